import { setImmediate as breathe, setTimeout as sleep } from 'node:timers/promises'
import type { Failure, FailureCode, Message, ModelPart, ModelProvider, ModelRequest, ToolResultBlock } from '../port.ts'
import { type Act, turnsOf } from './script.ts'

const INTRODUCTION =
  'This is the built-in demo model: no model is configured, so no language model answers. ' +
  'Lines such as "/say TEXT" or "/tool NAME {json}" in the prompt steer it.'

/** Parts between two chances for everything else in the process. */
const PARTS_PER_BREATH = 32

/** The model of a server without one (D1.4): offline, steered from the prompt, and what it says depends on the request alone. */
export function createDemoProvider(): ModelProvider {
  return { type: 'demo', stream }
}

async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart, void, undefined> {
  let given = 0
  for (const step of stepsOf(request)) {
    if (step.type === 'sleep') await sleep(step.ms, undefined, { signal }).catch(() => undefined)
    else if (given++ % PARTS_PER_BREATH === 0) await breathe()
    if (signal.aborted) return
    if (step.type !== 'sleep') yield step
    if (step.type === 'failure') return
  }
}

type Step = ModelPart | { type: 'sleep'; ms: number }

function stepsOf(request: ModelRequest): Step[] {
  const steps = actsNow(request.messages).flatMap((act) => perform(act, request.messages))
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

/** This turn's lines. The conversation's first words are the introduction, a run's last ones tell what its tools gave. */
function actsNow(messages: readonly Message[]): Act[] {
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const prompt = messages[asked]
  const since = messages.slice(asked + 1)
  const turn = since.filter(({ role }) => role === 'assistant').length
  const acts = turnsOf(prompt?.role === 'user' ? prompt.text : '')[turn] ?? []
  const results = since.flatMap((message) => (message.role === 'tool' ? message.results : []))
  const isLast = acts.at(-1)?.do !== 'call'
  const told: Act[] = isLast && results.length > 0 ? [{ do: 'say', text: tell(results) }] : []
  const isFirst = !messages.some(({ role }) => role === 'assistant')
  return isFirst ? introduced(acts) : [...acts, ...told]
}

/** Before the first word or call, but not before a failure: that one may come before anything has been seen. */
function introduced(acts: Act[]): Act[] {
  const at = acts.findIndex((act) => act.do === 'say' || act.do === 'call' || act.do === 'fail')
  if (acts[at]?.do === 'fail') return acts
  return acts.toSpliced(at < 0 ? acts.length : at, 0, { do: 'say', text: INTRODUCTION })
}

const MAX_TOLD_CHARS = 500

const tell = (results: ToolResultBlock[]) =>
  results
    .map(({ toolName, output, isError }) => `${toolName} ${isError ? 'failed' : 'answered'}: ${clip(output)}`)
    .join('\n')

const clip = (text: string) => (text.length > MAX_TOLD_CHARS ? `${text.slice(0, MAX_TOLD_CHARS)}…` : text)

function perform(act: Act, messages: readonly Message[]): Step[] {
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

/** Each word with the blanks before it, as models say them. */
const words = (text: string): string[] => text.match(/\s*\S+(?:\s+$)?/g) ?? []

const RETRYABLE: ReadonlySet<FailureCode> = new Set(['provider_rate_limited', 'provider_unavailable', 'timeout'])

function failureOf(code: FailureCode): Failure {
  const isRetryable = RETRYABLE.has(code)
  return { code, message: 'the demo model was told to fail', reason: 'demo', isRetryable, isFailover: isRetryable }
}
