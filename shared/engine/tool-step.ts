import { AppError } from '../errors.ts'
import type { AgentEvent, JsonObject, PlanQueuedEvent } from '../events.ts'
import type { AssistantBlock, ToolResultBlock } from '../providers/port.ts'
import { fail, type SubAgents, type ToolBox, type ToolOutcome, type ToolServices } from '../tools/port.ts'
import { EventQueue } from './event-queue.ts'
import type { OpenAsk } from './permissions.ts'
import type { Emit } from './sub-agents.ts'
import type { ToolCall } from './turn.ts'

export type ToolStepDeps = {
  toolBox: ToolBox
  openAsk: OpenAsk
  /** The run's folder; called when a tool is about to run, and never for a run without tool calls. */
  workspace: () => string
  signal: AbortSignal
  /** Asked right before each tool starts; `false` when the run has ended. It may take its time (design §4.6). */
  canAct(signal: AbortSignal): Promise<boolean>
  maxOutputChars: number
  facilities: ToolServices
  /** The sub-agents that this step's tools may start; `emit` is this step's way to the stream. */
  agentsFor(emit: Emit): SubAgents
  /** Told of a tool that threw, which is a bug of the tool. */
  onToolBug(toolName: string, cause: unknown): void
}

const MAX_CALLS = 64
const MAX_QUEUED = 256

/** What a turn's tool calls came to, in the order of the calls. */
export type ToolStep = { results: ToolResultBlock[]; ending?: PlanQueuedEvent }

/** The calls as they stand in the history. */
export const toolUseBlocks = (calls: readonly ToolCall[]): AssistantBlock[] =>
  calls.map(({ id, toolName, input, meta }) => ({
    type: 'tool_use',
    id,
    toolName,
    input: parseInput(input) ?? {},
    ...(meta && { meta }),
  }))

/**
 * Makes one turn's tool calls, all at once: each reports its events as they come, and those that ask wait for their own
 * verdict (D4.3). Once the signal is aborted the events end, and the calls
 * are left to stop by themselves.
 */
export async function* callTools(
  calls: readonly ToolCall[],
  deps: ToolStepDeps,
): AsyncGenerator<AgentEvent, ToolStep, undefined> {
  if (calls.length === 0) return { results: [] }
  for (const { id, toolName, input } of calls) {
    yield { type: 'tool_use', id, tool_name: toolName, input: parseInput(input) ?? {} }
  }
  const events = new EventQueue<AgentEvent>(MAX_QUEUED)
  const close = () => events.close()
  deps.signal.addEventListener('abort', close, { once: true })
  const agents = deps.agentsFor((event) => events.send(event))
  const settled = Promise.all(
    calls.map((call, index) => callTool(call, index < MAX_CALLS, { ...deps, events, agents })),
  )
  settled.then(close, close)
  yield* events
  deps.signal.removeEventListener('abort', close)
  return deps.signal.aborted ? { results: [] } : stepOf(await settled)
}

type Settled = { result: ToolResultBlock; ending: PlanQueuedEvent | undefined }

function stepOf(settled: readonly Settled[]): ToolStep {
  const ending = settled.find((call) => call.ending)?.ending
  return { results: settled.map(({ result }) => result), ...(ending && { ending }) }
}

type CallDeps = ToolStepDeps & { events: EventQueue<AgentEvent>; agents: SubAgents }

async function callTool(call: ToolCall, isWithinLimit: boolean, deps: CallDeps): Promise<Settled> {
  const { id, toolName } = call
  const outcome = isWithinLimit
    ? await outcomeOf(call, deps)
    : fail(`Not run: a turn may make ${MAX_CALLS} tool calls. Make the rest in the next turn.`)
  const output = capOutput(outcome.output, deps.maxOutputChars)
  if (output !== outcome.output) deps.events.push(truncationWarning(call, outcome.output.length, deps.maxOutputChars))
  deps.events.push({ type: 'tool_result', id, tool_name: toolName, output, is_error: outcome.isError })
  return { result: { id, toolName, output, isError: outcome.isError }, ending: outcome.ending }
}

/** Check, ask, run: each stage may settle the call. Whatever goes wrong is a value that the model reads. */
async function outcomeOf(call: ToolCall, deps: CallDeps): Promise<ToolOutcome> {
  const { toolName } = call
  const tool = deps.toolBox.find(toolName)
  if (!tool) return fail(`There is no tool ${toolName}. The tools are: ${namesOf(deps.toolBox)}.`)
  const input = parseInput(call.input)
  if (!input)
    return fail(
      `The input of ${toolName} is not a JSON object of at most ${MAX_DEPTH} levels. Call it again with valid JSON.`,
    )
  const problem = deps.toolBox.problemWith(toolName, input)
  if (problem !== undefined) return fail(problem)

  const policy = deps.toolBox.policyOf(toolName)
  if (policy === 'deny') return fail(`${toolName} is switched off by this server's policy. Go on without it.`)
  if (policy === 'ask') {
    const refusal = await askFor(call, { input, message: tool.describe(input) }, deps)
    if (refusal) return refusal
  }
  if (!(await deps.canAct(deps.signal)) || deps.signal.aborted) return fail('The run has ended.')
  try {
    return await tool.run(input, {
      workspace: deps.workspace(),
      signal: deps.signal,
      report: reporter(call, deps.events),
      agents: deps.agents,
      ...deps.facilities,
    })
  } catch (cause) {
    deps.onToolBug(toolName, cause)
    return fail(`${toolName} failed unexpectedly. Try another way.`)
  }
}

async function askFor(
  { toolName }: ToolCall,
  { input, message }: { input: JsonObject; message: string },
  { openAsk, events, onToolBug }: CallDeps,
): Promise<ToolOutcome | undefined> {
  const ask = await openAsk({ toolName, input, message }).catch((cause: unknown) => {
    if (!(cause instanceof AppError)) onToolBug(toolName, cause)
  })
  // Nobody could be asked: nobody has said yes (design §7.9).
  if (!ask) return fail(`Permission to use ${toolName} was denied: the permission could not be asked`)
  events.push({ type: 'permission_request', id: ask.id, tool_name: toolName, input, message })
  const { isAllowed, reason } = await ask.verdict
  return isAllowed ? undefined : fail(`Permission to use ${toolName} was denied${reason && `: ${reason}`}`)
}

const reporter =
  ({ id, toolName }: ToolCall, events: EventQueue<AgentEvent>) =>
  (progress: number, detail: string): void =>
    events.offer({ type: 'tool_progress', id, tool_name: toolName, progress, detail })

const namesOf = ({ tools }: ToolBox): string => tools.map(({ name }) => name).join(', ')

/** Deeper input cannot be told to a client: rendering it would overflow the stack. */
const MAX_DEPTH = 64

/** A call without arguments may come as an empty text. */
function parseInput(text: string): JsonObject | undefined {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) && fitsDepth(value, MAX_DEPTH)
      ? (value as JsonObject)
      : undefined
  } catch {
    return undefined
  }
}

function fitsDepth(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((inner) => fitsDepth(inner, depth - 1))
}

function capOutput(output: string, maxChars: number): string {
  if (output.length <= maxChars) return output
  return `${output.slice(0, maxChars).toWellFormed()}\n[truncated: ${maxChars} of ${output.length} characters are shown]`
}

function truncationWarning({ id, toolName }: ToolCall, chars: number, maxChars: number): AgentEvent {
  return {
    type: 'warning',
    code: 'tool_output_truncated',
    message: `the output of ${toolName} was cut to ${maxChars} characters`,
    detail: { id, tool_name: toolName, chars, max_chars: maxChars },
  }
}
