import { type AgentEvent, isTerminal, type SubAgentEvent } from '../events.ts'
import { newId } from '../ids.ts'
import type { Usage } from '../providers/port.ts'
import type { AgentReport, AgentTask, SubAgents, ToolBox } from '../tools/port.ts'
import { addSpent, startTotals, type Totals } from './usage.ts'

/** D5.3. */
const MAX_DEPTH = 2
const MAX_CHILDREN = 8
const MAX_IN_RUN = 64
/** api.md Limits: a sub-agent's result in its event. */
const MAX_RESULT_BYTES = 2_048

/** What all sub-agents of one run have in common: how many there were, and what they cost. */
export class AgentTree {
  started = 0
  /** What the sub-agents have spent; their turns are not the run's. */
  spent: Totals = startTotals()
}

/** Where a run stands in its tree; a run that no agent started has none. */
export type Lineage = { tree: AgentTree; depth: number; id: string; emit: Emit }

/** Puts an event on the root's stream; resolves when there is room for more. */
export type Emit = (event: AgentEvent) => Promise<void>

export type SubAgentDeps = {
  tree: AgentTree
  /** The agent that the tools were called by; absent: the run itself. */
  caller?: Lineage
  emit: Emit
  /** The caller's tools. */
  toolBox: ToolBox
  model: string
  launch(task: AgentTask, child: Lineage): AsyncIterable<AgentEvent>
}

/** The sub-agents that one agent's tool calls may start: runs of the same loop, told on the root's stream (D4.13). */
export function createSubAgents(deps: SubAgentDeps): SubAgents {
  const { tree, caller } = deps
  const depth = caller?.depth ?? 0
  let children = 0
  return {
    depth,
    refusal(tasks) {
      const count = tasks.length
      const unknown = tasks.flatMap(({ tools = [] }) => tools).filter((name) => !deps.toolBox.find(name))
      if (unknown.length > 0) return `There is no tool ${unknown.join(', ')}. The tools are: ${namesOf(deps.toolBox)}.`
      if (depth >= MAX_DEPTH) return `Sub-agents go ${MAX_DEPTH} deep and no deeper: do this task yourself.`
      if (children + count > MAX_CHILDREN) {
        return `An agent may have ${MAX_CHILDREN} sub-agents at a time, and ${children} are at work: wait for their results first.`
      }
      if (tree.started + count <= MAX_IN_RUN) return undefined
      return `A run may start ${MAX_IN_RUN} sub-agents, and ${tree.started} were started: do the rest yourself.`
    },
    async run(task) {
      children++
      tree.started++
      try {
        return await follow(task, deps)
      } finally {
        children--
      }
    },
  }
}

const namesOf = ({ tools }: ToolBox): string => tools.map(({ name }) => name).join(', ')

async function follow(task: AgentTask, { tree, caller, emit, model, launch }: SubAgentDeps): Promise<AgentReport> {
  const id = newId('sub')
  const startedMs = Date.now()
  const parentage = { subagent_id: id, ...(caller && { parent_subagent_id: caller.id }) }
  const { description } = task
  await emit({
    type: 'subagent_start',
    ...parentage,
    ...(description && { description }),
    model,
    start_time_ms: startedMs,
  })
  const listener = new Listener(tree)
  for await (const event of launch(task, { tree, depth: (caller?.depth ?? 0) + 1, id, emit })) {
    listener.take(event)
    const wrapped = emit(wrap(event, parentage))
    if (event.type === 'permission_request') await emit(event) // Right behind, to be answered like any other (D4.13).
    await wrapped
  }
  const { status, result, error } = listener.report
  const told = {
    duration_ms: Date.now() - startedMs,
    status,
    result: cut(result),
    ...(error !== undefined && { error }),
  }
  await emit({ type: 'subagent_end', ...parentage, ...told })
  return listener.report
}

function wrap({ type, ...fields }: AgentEvent, parentage: { subagent_id: string }): SubAgentEvent {
  return { type: 'subagent_event', ...parentage, event_type: type, ...fields }
}

/** Makes of a sub-agent's events what its caller reads of it, and counts what it cost. */
class Listener {
  readonly #tree: AgentTree
  #texts: string[] = []
  #end: { status: AgentReport['status']; error?: string } = { status: 'failed', error: 'it ended without a word' }

  constructor(tree: AgentTree) {
    this.#tree = tree
  }

  get report(): AgentReport {
    return { ...this.#end, result: this.#texts.join('\n') }
  }

  take(event: AgentEvent): void {
    if (event.type === 'turn_start') this.#texts = []
    if (event.type === 'text') this.#texts.push(event.text)
    if (event.type === 'turn_end') this.#tree.spent = addSpent(this.#tree.spent, usageOf(event), event.cost_usd)
    if (isTerminal(event)) this.#end = endOf(event)
  }
}

const CANCELLED = new Set(['cancelled', 'session_deleted', 'worker_draining', 'worker_lost'])

function endOf(event: AgentEvent): { status: AgentReport['status']; error?: string } {
  if (event.type !== 'error') return { status: 'completed' }
  return { status: CANCELLED.has(event.code) ? 'cancelled' : 'failed', error: event.error }
}

function usageOf(event: Extract<AgentEvent, { type: 'turn_end' }>): Usage {
  return {
    input: event.input_tokens,
    output: event.output_tokens,
    cacheRead: event.cache_read_tokens ?? 0,
    cacheWrite: event.cache_write_tokens ?? 0,
  }
}

/** Whole characters only. */
function cut(result: string): string {
  const bytes = Buffer.from(result)
  if (bytes.length <= MAX_RESULT_BYTES) return result
  return `${bytes
    .subarray(0, MAX_RESULT_BYTES)
    .toString()
    .replace(/\uFFFD+$/, '')}...`
}

/** Tools that a sub-agent may not use: those that are for the run itself, and at the last depth those that start others. */
const ROOT_ONLY: ReadonlySet<string> = new Set(['Team', 'ExitPlanMode'])
const STARTERS: ReadonlySet<string> = new Set(['Agent', 'Skill', 'Dream'])

/**
 * What a sub-agent of this depth is offered of its caller's tools. What starts others is found although it is not offered, so
 * that the model reads why it may not.
 */
export function narrow(toolBox: ToolBox, depth: number, names?: readonly string[]): ToolBox {
  const isWithheld = (name: string) => ROOT_ONLY.has(name) || (depth >= MAX_DEPTH && STARTERS.has(name))
  const isNamed = (name: string) => names === undefined || names.includes(name)
  return {
    tools: toolBox.tools.filter(({ name }) => !isWithheld(name) && isNamed(name)),
    find: (name) => (name !== 'ExitPlanMode' && (isNamed(name) || isWithheld(name)) ? toolBox.find(name) : undefined),
    policyOf: (name) => toolBox.policyOf(name),
    problemWith: (name, input) => toolBox.problemWith(name, input),
  }
}
