import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { plan } from './acts.ts'
import { stopsOf } from './history.ts'
import type { Life } from './life.ts'
import { Player } from './player.ts'
import type { Answer, Refusal, ScriptedAnswer, StatusAnswer } from './script.ts'
import { type Call, type Wire, wholeEncoder } from './wire.ts'

/** One request with all that its answer needs. */
export type Exchange = {
  wire: Wire
  call: Call
  streamed: boolean
  res: ServerResponse
  life: Life
}

/** Gives the answer. Resolves when it has been sent, torn down as it asked, or left by its reader. */
export async function give(answer: Answer, exchange: Exchange): Promise<void> {
  try {
    if (typeof answer === 'string') await perform({ steps: [{ text: answer }] }, exchange)
    else if (Array.isArray(answer)) await perform({ steps: answer }, exchange)
    else if ('steps' in answer) await perform(answer, exchange)
    else if ('contextTooLong' in answer) await refuseLength(exchange)
    else await refuse(answer, exchange)
  } catch (cause) {
    if (!exchange.life.signal.aborted) throw cause
  }
}

async function perform(answer: ScriptedAnswer, exchange: Exchange): Promise<void> {
  const { wire, streamed, res, life } = exchange
  const { acts, finish, stopSequence } = plan(answer, stopsOf(exchange.call.body))
  const call = { ...exchange.call, ...priced(answer, exchange.call), opensWith: opening(acts) }
  const encoder = streamed ? wire.stream(call) : wholeEncoder(wire, call)
  const player = new Player({ res, encoder, life, fail: (failure) => sendStatus(failure, exchange) })
  res.setHeader('content-type', streamed ? 'text/event-stream; charset=utf-8' : 'application/json')
  if (streamed) {
    res.setHeader('cache-control', 'no-cache')
    res.flushHeaders()
  }
  const failsAtOnce = acts[0] !== undefined && 'error' in acts[0]
  if (wire.opensBeforeFailing || !failsAtOnce) await player.write(encoder.open())
  if (!(await player.play(acts))) return
  const usage = { ...call.usage, output: player.sent, ...answer.usage }
  res.end(encoder.close({ finish, stopSequence, usage }))
}

/** What the call costs before the model has written anything. */
function priced({ usage }: ScriptedAnswer, call: Call): Pick<Call, 'usage'> {
  return { usage: { ...call.usage, ...usage, output: 0, reasoning: 0 } }
}

function opening(acts: ReturnType<typeof plan>['acts']): Call['opensWith'] {
  const first = acts.find((act) => 'say' in act || 'tokens' in act || 'call' in act)
  if (first && 'call' in first) return 'tool'
  return first && 'say' in first ? first.say : 'text'
}

function refuseLength(exchange: Exchange): Promise<void> {
  const { wire, streamed } = exchange
  if (streamed && wire.opensBeforeFailing) return perform({ steps: [{ error: wire.contextTooLong }] }, exchange)
  return refuse(wire.contextTooLong, exchange)
}

async function refuse(refusal: Refusal, exchange: Exchange): Promise<void> {
  if ('status' in refusal) return sendStatus(refusal, exchange)
  if ('resetBeforeHeaders' in refusal) return exchange.life.reset()
  await once(exchange.life.signal, 'abort')
}

function sendStatus(answer: StatusAnswer, { wire, call, res }: Exchange): void {
  const { status, body = wire.errorBody(answer, call.id, answer.retryAfter), headers = {}, retryAfter } = answer
  const wait = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
  res.writeHead(status, { 'content-type': 'application/json', ...wait, ...headers })
  res.end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** The error of a request that belongs to no format, or of a script that fails. */
export function sendError(res: ServerResponse, status: number, message: string): void {
  res.writeHead(status, { 'content-type': 'application/json' })
  res.end(JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: null } }))
}
