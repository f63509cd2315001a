import type { Batched } from '../../kernel/async/batch.ts'
import { type FlatGenerator, inPlace } from '../../kernel/async/flat-iteration.ts'
import type { AgentEvent, JsonObject, PlanQueuedEvent } from '../../kernel/events.ts'
import { countChars, listOf, truncate, truncateStart } from '../../kernel/text.ts'
import { inSpan } from '../../kernel/trace.ts'
import type { AssistantBlock, ToolResultBlock } from '../providers/port.ts'
import { fail, type Tool, type ToolBox, type ToolOutcome } from '../tools/port.ts'
import { type ClientCalls, type ClientOutcome, clientOutcome, openClientCalls } from './client-calls.ts'
import type { RunResources, Tools } from './resources.ts'
import { runTool } from './run-tool.ts'
import { StepEvents } from './step-events.ts'
import type { Emit, EngineSubAgents } from './sub-agents.ts'
import { MAX_INPUT_DEPTH, parseInput, visibleInput } from './tool-input.ts'
import { permit } from './tool-permission.ts'
import type { ToolCall } from './turn.ts'

export type ToolStepResources = Pick<RunResources, 'tools' | 'permissions' | 'signal' | 'progress'> & {
  /** Returns the starter of sub-agents for this step's calls; their events go out through `emit`. */
  subAgentsFor(emit: Emit): EngineSubAgents
}

/** api.md "Limits": tool calls of one turn. */
const MAX_CALLS = 64
const MAX_QUEUED = 256

/**
 * The results of a turn's tool calls, in the order of the calls. `ending`, if set, ends the run; calls that are handed over to the client end it,
 * too.
 */
export type ToolStep = { results: ToolResultBlock[]; ending: PlanQueuedEvent | undefined; isHandedOver?: true }

/** Renders tool calls as the history keeps them. */
export const toolUseBlocks = (calls: readonly ToolCall[]): AssistantBlock[] =>
  calls.map(({ id, toolName, input, meta }) => ({
    type: 'tool_use',
    id,
    toolName,
    input: visibleInput(input),
    ...(meta && { meta }),
  }))

/**
 * Makes one turn's tool calls, all at the same time: their events come in the order in which they happen, and each call that
 * needs permission waits for its own decision (D4.3). Once the signal is aborted the events end with the decisions of the open requests;
 * the calls stop by themselves.
 */
export async function* callTools(
  calls: readonly ToolCall[],
  { subAgentsFor, ...resources }: ToolStepResources,
): FlatGenerator<Batched<AgentEvent>, ToolStep, void> {
  const { signal } = resources
  const opening = openClientCalls(calls.slice(0, MAX_CALLS), resources, (call) => checkCall(call, resources.tools))
  const clientCalls = opening instanceof Promise ? await opening : opening
  for (const { id, toolName, input } of calls) {
    const shown = clientCalls.get(id)?.shown
    yield { type: 'tool_use', id, tool_name: toolName, input: visibleInput(input), ...shown }
  }
  if (clientCalls.size > 0 && resources.permissions.endsWithCalls) return HANDED_OVER
  const events = new StepEvents(MAX_QUEUED, clientCalls.keys())
  const close = () => events.close()
  const abort = () => events.abort()
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  const step = { ...resources, events, clientCalls, agents: subAgentsFor((event) => events.send(event)) }
  const settled = Promise.all(calls.map((call, index) => callTool(call, index < MAX_CALLS, step)))
  settled.then(close, close)
  yield inPlace(events[Symbol.asyncIterator]())
  signal.removeEventListener('abort', abort)
  return signal.aborted ? { results: [], ending: undefined } : stepOf(await settled)
}

/** The result of an answer without calls. */
export const NO_CALLS: ToolStep = { results: [], ending: undefined }
const HANDED_OVER: ToolStep = { results: [], ending: undefined, isHandedOver: true }

type Settled = { result: ToolResultBlock; ending: PlanQueuedEvent | undefined }

const stepOf = (settled: readonly Settled[]): ToolStep => ({
  results: settled.map(({ result }) => result),
  ending: settled.find(({ ending }) => ending)?.ending,
})

type Step = Omit<ToolStepResources, 'subAgentsFor'> & {
  events: StepEvents
  clientCalls: ClientCalls
  agents: EngineSubAgents
}

async function callTool(call: ToolCall, isWithinLimit: boolean, step: Step): Promise<Settled> {
  const { id, toolName } = call
  const known = earlierResult(call, step)
  if (known) return announce(withLostFiles(known, step), step)
  const { maxOutputChars } = step.tools
  const outcome: Outcome = isWithinLimit
    ? await tracedOutcomeOf(call, step)
    : fail(`Not run: a turn may make ${MAX_CALLS} tool calls. Make the rest in the next turn.`)
  const output = capOutput(outcome.output, maxOutputChars)
  if (output !== outcome.output) step.events.push(truncationWarning(call, outcome.output, maxOutputChars))
  const { isError, attachments, artifacts, ending, answered } = outcome
  const files = { ...(attachments && { attachments }), ...(artifacts && { artifacts }) }
  const result = withLostFiles({ id, toolName, output, isError, ...files }, step)
  step.progress?.end(id, result, answered !== undefined)
  return announce(result, step, { ending, answered })
}

/** `answered` is set for a call that the client has executed. */
type Outcome = ToolOutcome & Partial<Pick<ClientOutcome, 'answered'>>

function announce(
  result: ToolResultBlock,
  { events }: Pick<Step, 'events'>,
  { ending, answered }: { ending?: ToolOutcome['ending'] | undefined; answered?: Outcome['answered'] } = {},
): Settled {
  const { id, toolName, output, isError, artifacts = [] } = result
  for (const artifact of artifacts) events.push({ type: 'artifact', ...artifact, tool_use_id: id })
  events.push({ type: 'tool_result', id, tool_name: toolName, output, is_error: isError, ...answered })
  return { result, ending }
}

/** The result of a call that an earlier process has made, or may have made. */
function earlierResult({ id, toolName }: ToolCall, { progress }: Step): ToolResultBlock | undefined {
  const { hasBegun, result } = progress?.earlier(id) ?? {}
  if (!hasBegun) return undefined
  return result ?? { id, toolName, output: interrupted(toolName), isError: true }
}

function tracedOutcomeOf(call: ToolCall, step: Step): Promise<Outcome> {
  const { id, toolName } = call
  const attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': toolName,
    'gen_ai.tool.call.id': id,
  }
  return inSpan(`execute_tool ${toolName}`, { attributes }, async (markFailed) => {
    const outcome = await outcomeOf(call, step)
    if (outcome.isError) markFailed('tool_error')
    return outcome
  })
}

/** Checks the call, asks for permission and runs it; each stage may end it. Every failure is a value that the model reads. */
async function outcomeOf(call: ToolCall, step: Step): Promise<Outcome> {
  const ask = step.clientCalls.get(call.id)?.ask
  if (ask) return clientOutcome(call.toolName, ask)
  const ready = await checkCall(call, step.tools)
  if ('refusal' in ready) return ready.refusal
  const permitted = await permit({ id: call.id, ...ready }, step)
  if ('refusal' in permitted) return permitted.refusal
  const outcome = await runTool(ready.tool, permitted.input, { call, step })
  return permitted.isEdited ? { ...outcome, output: `${editNote(permitted.input)}\n\n${outcome.output}` } : outcome
}

/** The tool of a call and its input, or why the call is not made. */
async function checkCall(
  call: ToolCall,
  { toolBox }: Pick<Tools, 'toolBox'>,
): Promise<{ tool: Tool; input: JsonObject } | { refusal: ToolOutcome }> {
  const { toolName } = call
  const refuse = (output: string) => ({ refusal: fail(output) })
  if (call.isCut) return refuse(cutCall(toolName))
  const tool = toolBox.find(toolName)
  if (!tool) return refuse(`There is no tool ${toolName}. The tools are: ${namesOf(toolBox)}.`)
  const input = parseInput(call.input)
  if (!input) {
    const problem = `The input of ${toolName} is not a JSON object of at most ${MAX_INPUT_DEPTH} levels.`
    return refuse(`${problem} Call it again with valid JSON.`)
  }
  const problem = await toolBox.problemWith(toolName, input)
  if (problem === undefined) return { tool, input }
  return refuse(call.isReread ? `${problem} ${REREAD}` : problem)
}

/** Adds to the first result in this process which changes of an earlier process are missing here. */
function withLostFiles(result: ToolResultBlock, { progress }: Step): ToolResultBlock {
  const lost = progress?.takeLostFiles() ?? []
  if (lost.length === 0) return result
  const note = `The server of this run failed. Earlier changes of these files are missing here: ${listOf(lost)}`
  return { ...result, output: `${result.output}\n\n[${note}. Look at them before you rely on them.]` }
}

const MAX_EDIT_CHARS = 10_000

/** A note before the output, so that the model knows which input was used instead of its own. */
const editNote = (input: JsonObject): string =>
  truncate(`The user changed the input of this call. It ran with ${JSON.stringify(input)}`, MAX_EDIT_CHARS, ' […]')

const interrupted = (toolName: string): string =>
  `${toolName} was interrupted by a failure of this server. It may have run, completely or in part. Find out what it has done before you call it again.`

const REREAD = 'Arguments that were JSON as a text have been read as JSON: write the values themselves.'

const namesOf = ({ tools }: ToolBox): string => tools.map(({ name }) => name).join(', ')

const cutCall = (toolName: string): string =>
  `Not run: the output limit was reached before the input of ${toolName} was complete. Call it again with a shorter input, in several calls if needed.`

/** Returns a short `output` unchanged, or both ends of a long one: errors, exit codes and the next offset are at the end. */
function capOutput(output: string, maxChars: number): string {
  if (output.length <= maxChars) return output
  const chars = countChars(output)
  if (chars <= maxChars) return output
  const half = Math.floor(maxChars / 2)
  const gap = `\n[… ${chars - 2 * half} of ${chars} characters left out …]\n`
  return truncate(output, half, gap) + truncateStart(output, half)
}

function truncationWarning({ id, toolName }: ToolCall, output: string, maxChars: number): AgentEvent {
  return {
    type: 'warning',
    code: 'tool_output_truncated',
    message: `the output of ${toolName} was cut to ${maxChars} characters`,
    detail: { id, tool_name: toolName, chars: countChars(output), max_chars: maxChars },
  }
}
