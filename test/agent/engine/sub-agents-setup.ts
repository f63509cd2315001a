import { AgentTree } from '../../../shared/agent/engine/account.ts'
import { createSubAgents, type Lineage, type SubAgentOptions } from '../../../shared/agent/engine/sub-agents.ts'
import { type AgentTask, succeed, type Tool, type ToolBox } from '../../../shared/agent/tools/port.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { DONE } from '../../worker/events.ts'

const tool = (name: string): Tool => ({
  name,
  description: name,
  inputSchema: {},
  defaultPolicy: 'allow',
  describe: () => name,
  run: async () => succeed(''),
})

export const boxOf = (...names: string[]): ToolBox => {
  const tools = names.map(tool)
  return {
    tools,
    find: (name) => tools.find((candidate) => candidate.name === name),
    policyOf: () => 'allow',
    problemWith: async () => undefined,
  }
}

export const TASK: AgentTask = { description: 'task', prompt: 'do it' }
export const ANSWER: AgentEvent[] = [{ type: 'text', text: 'answer' }, DONE]

/** Sub-agents that each yield `events` after `gate` has opened. `emitted` is what reaches the root's stream. */
export function setUp({ events = ANSWER, gate = Promise.resolve(), ...rest }: Partial<Setup> = {}) {
  const emitted: AgentEvent[] = []
  const options: SubAgentOptions = {
    tree: new AgentTree(),
    caller: undefined,
    emit: async (event) => void emitted.push(event),
    toolBox: boxOf('Read'),
    model: 'm',
    onBug: () => {},
    async *launch() {
      await gate
      yield* events
    },
    ...rest,
  }
  return { agents: createSubAgents(options), tree: options.tree, emitted }
}

type Setup = SubAgentOptions & { events: AgentEvent[]; gate: Promise<void> }

export const lineageOf = (tree: AgentTree, depth: number): Lineage => ({
  tree,
  depth,
  id: 'sub_1',
  emit: async () => {},
})
