import { type Batched, eachOf } from '../../kernel/async/batch.ts'
import { type AgentEvent, isTerminal, type SubAgentEndEvent, type SubAgentEvent } from '../../kernel/events.ts'
import { newId } from '../../kernel/ids.ts'
import { inSpan } from '../../kernel/trace.ts'
import type { AgentReport, AgentTask, SubAgents, Tool, ToolBox } from '../tools/port.ts'
import type { AgentTree } from './account.ts'
import type { CallProgress } from './call-progress.ts'
import { knownName } from './known-call.ts'
import { LastAnswer } from './last-answer.ts'

/** Limits of D5.3. */
const MAX_DEPTH = 2
const MAX_CHILDREN = 8
const MAX_IN_RUN = 64
/** api.md "Limits": the length of a sub-agent's result in `subagent_end`. */
const MAX_RESULT_BYTES = 2_048

/** The place of a sub-agent in its run's tree. The run itself has no `Lineage`. */
export type Lineage = { tree: AgentTree; depth: number; id: string; emit: Emit }

/** Puts an event on the root run's stream; resolves when there is room for more. */
export type Emit = (event: AgentEvent) => Promise<void>

export type SubAgentOptions = {
  tree: AgentTree
  /** The sub-agent that makes the tool calls; `undefined` for the run itself. */
  caller: Lineage | undefined
  emit: Emit
  /** The caller's tools. */
  toolBox: ToolBox
  model: string
  launch(task: AgentTask, child: Lineage, progress: CallProgress | undefined): AsyncIterable<Batched<AgentEvent>>
  /** Called when a sub-agent has thrown. Other sub-agents continue. */
  onBug(cause: unknown): void
}

/** `progress` stores the beginning of the sub-agent's tool calls. */
export type EngineSubAgents = Omit<SubAgents, 'run'> & {
  run(task: AgentTask, progress?: CallProgress): Promise<AgentReport>
}

/** Starts sub-agents for one agent's tool calls: runs of the same loop whose events go to the root's stream (D4.13). */
export function createSubAgents(options: SubAgentOptions): EngineSubAgents {
  const { tree, toolBox } = options
  const depth = options.caller?.depth ?? 0
  let children = 0
  return {
    depth,
    refusal(tasks) {
      const count = tasks.length
      const unknown = tasks.flatMap(({ tools = [] }) => tools).filter((name) => !toolBox.find(name))
      if (unknown.length > 0) return `There is no tool ${unknown.join(', ')}. The tools are: ${namesOf(toolBox)}.`
      if (depth >= MAX_DEPTH) return `Sub-agents go ${MAX_DEPTH} deep and no deeper: do this task yourself.`
      if (children + count > MAX_CHILDREN) {
        return `An agent may have ${MAX_CHILDREN} sub-agents at a time, and ${children} are at work: wait for their results first.`
      }
      if (tree.started + count <= MAX_IN_RUN) return undefined
      return `A run may start ${MAX_IN_RUN} sub-agents, and ${tree.started} were started: do the rest yourself.`
    },
    async run(task, progress) {
      children++
      tree.started++
      try {
        return await inSpan(INVOKE_AGENT, SUB_AGENT_SPAN, async (fail) => {
          const report = await runSubAgent(task, options, progress)
          if (report.status !== 'completed') fail(report.status)
          return report
        })
      } finally {
        children--
      }
    },
  }
}

const INVOKE_AGENT = 'invoke_agent sub-agent'
const SUB_AGENT_SPAN = {
  attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'sub-agent' },
}

const namesOf = ({ tools }: ToolBox): string => tools.map(({ name }) => name).join(', ')

async function runSubAgent(
  task: AgentTask,
  options: SubAgentOptions,
  progress: CallProgress | undefined,
): Promise<AgentReport> {
  const { tree, caller, emit, model, launch, onBug } = options
  const id = newId('sub')
  const start = performance.now()
  const parentage: Parentage = caller ? { subagent_id: id, parent_subagent_id: caller.id } : { subagent_id: id }
  const description = task.description ? { description: task.description } : {}
  await emit({ type: 'subagent_start', ...parentage, ...description, model, start_time_ms: Date.now() })
  const collector = new ReportCollector()
  const lineage = { tree, depth: (caller?.depth ?? 0) + 1, id, emit }
  try {
    for await (const events of launch(task, lineage, progress))
      for (const event of eachOf(events)) {
        collector.add(event)
        const wrapped = emit(wrap(event, parentage))
        // A permission request and its decision follow once more as plain events, so that clients treat it like any other (D4.13).
        if (ALSO_PLAIN.has(event.type)) await emit(event)
        await wrapped
      }
  } catch (cause) {
    onBug(cause)
  }
  await emit(endEvent(collector.report, parentage, Math.round(performance.now() - start)))
  return collector.report
}

/** The events that clients expect on the run's own stream, whichever agent they come from (D4.13, D50). */
const ALSO_PLAIN: ReadonlySet<AgentEvent['type']> = new Set(['permission_request', 'permission_resolved', 'artifact'])

type Parentage = { subagent_id: string; parent_subagent_id?: string }

function wrap({ type, ...fields }: AgentEvent, parentage: Parentage): SubAgentEvent {
  return { type: 'subagent_event', ...parentage, event_type: type, ...fields }
}

function endEvent({ status, result, error }: AgentReport, parentage: Parentage, durationMs: number): SubAgentEndEvent {
  const fields = { duration_ms: durationMs, status, result: truncateBytes(result) }
  const event: SubAgentEndEvent = { type: 'subagent_end', ...parentage, ...fields }
  return error === undefined ? event : { ...event, error }
}

/** Cuts the text at a character boundary. */
function truncateBytes(result: string): string {
  const bytes = Buffer.from(result)
  if (bytes.length <= MAX_RESULT_BYTES) return result
  const start = bytes.subarray(0, MAX_RESULT_BYTES).toString()
  return `${start.replace(/\uFFFD$/, '')}...`
}

/** Builds the report for the caller from a sub-agent's events. */
class ReportCollector {
  readonly #answer = new LastAnswer()
  #end: Pick<AgentReport, 'status' | 'error'> = { status: 'failed', error: 'it ended without an answer' }

  get report(): AgentReport {
    return { ...this.#end, result: this.#answer.text }
  }

  add(event: AgentEvent): void {
    this.#answer.note(event)
    if (isTerminal(event)) this.#end = outcomeOf(event)
  }
}

/** The sub-agents of one tool call. A report that an earlier process has stored is reused. */
export function keptSubAgents(agents: EngineSubAgents, callId: string, progress: CallProgress | undefined): SubAgents {
  if (!progress) return agents
  let count = 0
  return {
    depth: agents.depth,
    refusal: (tasks) => agents.refusal(tasks),
    async run(task) {
      const key = `${callId} ${count++}`
      const earlier = progress.earlierAgent(key)
      if (earlier) return earlier.report ?? INTERRUPTED
      const report = await agents.run(task, progress.ofAgent(key))
      progress.endAgent(key, report)
      return report
    },
  }
}

const INTERRUPTED: AgentReport = {
  status: 'failed',
  result: '',
  error:
    'it was interrupted by the failure of its server after it had begun to change things. Look what it has done before you go on',
}

const CANCELLED = new Set(['cancelled', 'session_deleted', 'worker_draining', 'worker_lost'])

function outcomeOf(event: AgentEvent): Pick<AgentReport, 'status' | 'error'> {
  if (event.type !== 'error') return { status: 'completed' }
  return { status: CANCELLED.has(event.code) ? 'cancelled' : 'failed', error: event.error }
}

/** Tools that only the run itself may use. */
const ROOT_ONLY: ReadonlySet<string> = new Set(['Team', 'ExitPlanMode'])
/** Tools that start sub-agents: sub-agents at the last depth do not get them. */
const STARTERS: ReadonlySet<string> = new Set(['Agent', 'Skill', 'Dream'])

/**
 * Narrows the caller's tools to those of a sub-agent at `depth`, and to `names`, if given. A tool that starts
 * sub-agents is found although it is not offered, so that the model reads why the call is refused.
 */
export function narrow(toolBox: ToolBox, depth: number, names?: readonly string[]): ToolBox {
  const isWithheld = (name: string) => ROOT_ONLY.has(name) || (depth >= MAX_DEPTH && STARTERS.has(name))
  const known = names?.map((name) => knownName(name, toolBox))
  const isClients = (tool: Tool | undefined) => tool?.defaultPolicy === 'client'
  const isNamed = (name: string) => known === undefined || known.includes(name)
  return {
    tools: toolBox.tools.filter((tool) => !isWithheld(tool.name) && isNamed(tool.name) && !isClients(tool)),
    servers: () => toolBox.servers?.() ?? [],
    find(name) {
      const tool = name !== 'ExitPlanMode' && (isNamed(name) || isWithheld(name)) ? toolBox.find(name) : undefined
      return isClients(tool) ? undefined : tool
    },
    // The client executes only calls of the run itself, not of sub-agents (D45.2b).
    policyOf(...call) {
      const policy = toolBox.policyOf(...call)
      return policy === 'client' ? 'deny' : policy
    },
    problemWith: (name, input) => toolBox.problemWith(name, input),
  }
}
