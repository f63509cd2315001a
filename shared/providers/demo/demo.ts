import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { truncate } from '../../text.ts'
import type { Failure, FailureCode, Message, ModelPart, ModelProvider, ModelRequest, ToolResultBlock } from '../port.ts'
import { type Act, turnsOf } from './script.ts'

const INTRODUCTION =
  'This is the built-in demo model: no model is configured, so no language model answers. ' +
  'Lines such as "/say TEXT" or "/tool NAME {json}" in the prompt steer it.'

/** Parts between two yields to the event loop, so that a long answer does not block the process. */
const PARTS_PER_YIELD = 32

/** The model of a server for which none is configured (D1.4). Works offline; its answer depends on the request only. */
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
  const steps = currentActs(request.messages).flatMap((act) => toSteps(act, request.messages))
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

/** The acts of this turn. The conversation starts with the introduction, and the last turn of a run reports the tools' results. */
function currentActs(messages: readonly Message[]): Act[] {
  const promptIndex = messages.findLastIndex(({ role }) => role === 'user')
  const prompt = messages[promptIndex]
  const since = messages.slice(promptIndex + 1)
  const turn = since.filter(({ role }) => role === 'assistant').length
  const acts = turnsOf(prompt?.role === 'user' ? prompt.text : '')[turn] ?? []
  const results = since.flatMap((message) => (message.role === 'tool' ? message.results : []))
  const isLast = acts.at(-1)?.do !== 'call'
  const report: Act[] = isLast && results.length > 0 ? [{ do: 'say', text: reportOf(results) }] : []
  const isFirst = !messages.some(({ role }) => role === 'assistant')
  return isFirst ? withIntroduction(acts) : [...acts, ...report]
}

/** Inserts the introduction before the first text or call. A failure at the start gets none, so that it can be the first part. */
function withIntroduction(acts: Act[]): Act[] {
  const at = acts.findIndex((act) => act.do === 'say' || act.do === 'call' || act.do === 'fail')
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
  if (act.do === 'fail') return [{ type: 'failure', failure: failureOf(act.code) }]
  if (act.do === 'call') {
    const { toolName, input } = act
    return [{ type: 'tool_call', id: `call_demo_${messages.length}`, toolName, input }]
  }
  const [delta, end] =
    act.do === 'say' ? (['text_delta', 'text_end'] as const) : (['thinking_delta', 'thinking_end'] as const)
  return [...words(act.text).map((text) => ({ type: delta, text })), { type: end }]
}

/** Splits a text into words, each with the blanks before it, as models stream them. */
const words = (text: string): string[] => text.match(/\s*\S+(?:\s+$)?/g) ?? []

const RETRYABLE_CODES: ReadonlySet<FailureCode> = new Set(['provider_rate_limited', 'provider_unavailable', 'timeout'])

function failureOf(code: FailureCode): Failure {
  const isRetryable = RETRYABLE_CODES.has(code)
  return {
    code,
    message: 'the demo model fails, because the prompt contains /fail',
    reason: 'demo',
    isRetryable,
    isFailover: isRetryable,
  }
}
