import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { truncate } from '../../../kernel/text.ts'
import { sampleOf } from '../../../platform/schemas/samples/sample.ts'
import type {
  Failure,
  FailureCode,
  Message,
  ModelPart,
  ModelProvider,
  ModelRequest,
  StructuredOutput,
  ToolResultBlock,
} from '../port.ts'
import { type Act, turnsOf } from './script.ts'

const INTRODUCTION = 'This is the built-in demo model: no model is configured, so no language model answers.'

/** Parts between two yields to the event loop, so that a long answer does not block the process. */
const PARTS_PER_YIELD = 32

/**
 * The model of a server for which none is configured (D1.4), and of instances of type `demo`. Works offline; its answer depends on the request
 * only. An answer that must fit a schema is generated from the schema, unless the prompt says what to answer.
 */
export function createDemoProvider(): ModelProvider {
  return { type: 'demo', stream }
}

async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart, void, undefined> {
  let partCount = 0
  for (const step of stepsOf(request)) {
    if (step.type === 'sleep') await sleep(step.ms, undefined, { signal }).catch(() => undefined)
    else if (partCount++ % PARTS_PER_YIELD === 0) await yieldToEventLoop()
    if (signal.aborted) return
    if (step.type !== 'sleep') yield step
    if (step.type === 'failure') return
  }
}

type Step = ModelPart | { type: 'sleep'; ms: number }

function stepsOf(request: ModelRequest): Step[] {
  const acts = request.output ? structuredActs(request.messages, request.output) : currentActs(request.messages)
  const steps = acts.flatMap((act) => toSteps(act, request.messages))
  const reason = steps.some(({ type }) => type === 'tool_call') ? 'tool_use' : 'end_turn'
  const output = steps.reduce(
    (chars, step) => chars + ('text' in step ? step.text : 'input' in step ? step.input : '').length,
    0,
  )
  const { system = '', messages, tools } = request
  const input = system.length + JSON.stringify(messages).length + JSON.stringify(tools).length
  const usage = { input: tokens(input), cacheRead: 0, cacheWrite: 0, output: tokens(output) }
  return [...steps, { type: 'finish', reason, usage }]
}

const CHARS_PER_TOKEN = 4

const tokens = (chars: number) => Math.ceil(chars / CHARS_PER_TOKEN)

/** The acts that the newest prompt asks for in this turn, and the messages since. */
function scriptOf(messages: readonly Message[]): { acts: Act[]; since: readonly Message[] } {
  const promptIndex = messages.findLastIndex(({ role }) => role === 'user')
  const prompt = messages[promptIndex]
  const since = messages.slice(promptIndex + 1)
  const turn = since.filter(({ role }) => role === 'assistant').length
  return { acts: turnsOf(prompt?.role === 'user' ? prompt.text : '')[turn] ?? [], since }
}

/** The acts of a turn whose text must be JSON: nothing is echoed, and the last turn contains the value. */
function structuredActs(messages: readonly Message[], { schema }: StructuredOutput): Act[] {
  const acts = scriptOf(messages).acts.filter(({ do: kind }) => kind !== 'echo')
  if (acts.some(({ do: kind }) => kind === 'call' || kind === 'say' || kind === 'fail')) return acts
  const sample = sampleOf(schema)
  const answer: Act =
    'value' in sample
      ? { do: 'say', text: JSON.stringify(sample.value, null, 2) }
      : { do: 'fail', code: 'provider_rejected', message: noAnswer(sample) }
  return [...acts, answer]
}

const noAnswer = ({ path, problem }: { path: string; problem: string }): string =>
  `the demo model has no answer for the output schema${path && ` at ${path}`}: ${problem}`

/**
 * The acts of this turn. The conversation starts with the introduction, every later question gets a short form of it,
 * and the last turn of a run reports the tools' results.
 */
function currentActs(messages: readonly Message[]): Act[] {
  const { acts, since } = scriptOf(messages)
  const results = since.flatMap((message) => (message.role === 'tool' ? message.results : []))
  const isLast = acts.at(-1)?.do !== 'call'
  const report: Act[] = isLast && results.length > 0 ? [{ do: 'say', text: reportOf(results) }] : []
  const isFirst = !messages.some(({ role }) => role === 'assistant')
  return isFirst ? withIntroduction(acts) : [...acts.map(reminded), ...report]
}

const reminded = (act: Act): Act =>
  act.do === 'echo' ? { do: 'say', text: `No model is configured. You wrote: ${act.text}` } : act

/** Inserts the introduction before the first text or call. A failure at the start gets none, so that it can be the first part. */
function withIntroduction(acts: Act[]): Act[] {
  const at = acts.findIndex((act) => act.do !== 'sleep' && act.do !== 'think')
  if (acts[at]?.do === 'fail') return acts
  return acts.toSpliced(at < 0 ? acts.length : at, 0, { do: 'say', text: INTRODUCTION })
}

const MAX_RESULT_CHARS = 500

const reportOf = (results: ToolResultBlock[]) =>
  results
    .map(
      ({ toolName, output, isError }) =>
        `${toolName} ${isError ? 'failed' : 'answered'}: ${truncate(output, MAX_RESULT_CHARS)}`,
    )
    .join('\n')

function toSteps(act: Act, messages: readonly Message[]): Step[] {
  if (act.do === 'sleep') return [{ type: 'sleep', ms: act.ms }]
  if (act.do === 'fail') return [{ type: 'failure', failure: failureOf(act) }]
  if (act.do === 'call') {
    const { toolName, input } = act
    return [{ type: 'tool_call', id: `call_demo_${messages.length}`, toolName, input }]
  }
  const [delta, end] =
    act.do === 'think' ? (['thinking_delta', 'thinking_end'] as const) : (['text_delta', 'text_end'] as const)
  return [
    ...words(act.do === 'echo' ? `You wrote: ${act.text}` : act.text).map((text) => ({ type: delta, text })),
    { type: end },
  ]
}

/** Splits a text into words, each with the blanks before it, like the pieces that models stream. */
const words = (text: string): string[] => text.match(/\s*\S+(?:\s+$)?/g) ?? []

type FailAct = Extract<Act, { do: 'fail' }>

const RETRYABLE_CODES: ReadonlySet<FailureCode> = new Set(['provider_rate_limited', 'provider_unavailable', 'timeout'])

function failureOf({ code, message = 'the demo model fails, because the prompt contains /fail' }: FailAct): Failure {
  const isRetryable = RETRYABLE_CODES.has(code)
  return {
    code,
    message,
    reason: 'demo',
    isRetryable,
    isFailover: isRetryable,
  }
}
