import type { Decision, OpenAsk, PlanMode } from '../../../shared/agent/engine/permissions.ts'
import type { RememberedTools } from '../../../shared/agent/engine/remembered-tools.ts'
import type { Tools } from '../../../shared/agent/engine/resources.ts'
import { callTools, type ToolStep, type ToolStepResources } from '../../../shared/agent/engine/tool-step.ts'
import type { ToolCall } from '../../../shared/agent/engine/turn.ts'
import type { ToolResultBlock } from '../../../shared/agent/providers/port.ts'
import { type Policy, succeed, type Tool } from '../../../shared/agent/tools/port.ts'
import { eachOf } from '../../../shared/kernel/async/batch.ts'
import { FlatIteration } from '../../../shared/kernel/async/flat-iteration.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { NO_AGENTS } from '../tools/setup.ts'

export const call = (id: string, toolName: string, input = '{}'): ToolCall => ({
  type: 'tool_call',
  id,
  toolName,
  input,
})

export const tool = (name: string, run: Tool['run'] = async () => succeed(`${name} ran`)): Tool => ({
  name,
  description: name,
  inputSchema: {},
  defaultPolicy: 'allow',
  describe: () => `${name} wants to run`,
  run,
})

export type Setup = Partial<Tools> & {
  tools?: Tool[]
  policy?: Policy
  problem?: string
  openAsk?: OpenAsk
  remembered?: RememberedTools
  planMode?: PlanMode
  signal?: AbortSignal
}

export const SOON = '2026-11-23T12:00:00.000Z'

/** Answers every request in this way. */
export const answered =
  (decision: Decision): OpenAsk =>
  async () => ({ id: 'perm_1', expiresAt: SOON, decision: Promise.resolve(decision) })

export const ALLOWED = answered({ allow: true, how: 'reply', reason: '' })

export function resourcesOf({
  tools = [],
  policy = 'allow',
  problem,
  openAsk = ALLOWED,
  remembered,
  planMode,
  signal,
  ...rest
}: Setup): ToolStepResources {
  return {
    tools: {
      toolBox: {
        tools,
        find: (name) => tools.find((candidate) => candidate.name === name),
        policyOf: () => policy,
        problemWith: async () => problem,
      },
      services: {},
      owner: { tenant: DEFAULT_TENANT, scope: 'run' },
      workspace: () => '/nowhere',
      canAct: async () => true,
      mayAct: () => true,
      maxOutputChars: 1000,
      onToolBug: () => {},
      ...rest,
    },
    permissions: { openAsk, ...(remembered && { remembered }), ...(planMode && { planMode }) },
    signal: signal ?? new AbortController().signal,
    subAgentsFor: () => NO_AGENTS,
  }
}

/** The events of tool calls one by one. */
export async function* stepOf(
  calls: readonly ToolCall[],
  resources: ToolStepResources,
): AsyncGenerator<AgentEvent, ToolStep | undefined> {
  const step = new FlatIteration(callTools(calls, resources))
  while (true) {
    const { done, value } = await step.next()
    if (done) return value
    yield* eachOf(value)
  }
}

export async function collect(
  calls: ToolCall[],
  resources: ToolStepResources,
): Promise<{ events: AgentEvent[]; results: ToolResultBlock[] }> {
  const events: AgentEvent[] = []
  const step = stepOf(calls, resources)
  while (true) {
    const next = await step.next()
    if (next.done) return { events, results: next.value?.results ?? [] }
    events.push(next.value)
  }
}

export const typesOf = (events: AgentEvent[]) => events.map(({ type }) => type)
