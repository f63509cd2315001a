import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type Act, planAnswer } from './acts.ts'
import type { Connection } from './connection.ts'
import { stopsOf } from './history.ts'
import { Player } from './player.ts'
import type { Answer, Refusal, ScriptedAnswer, StatusAnswer } from './script.ts'
import { type Call, type Wire, wholeEncoder } from './wire.ts'

/** One request, and everything that its answer needs. */
export type Exchange = {
  wire: Wire
  call: Call
  streamed: boolean
  res: ServerResponse
  connection: Connection
}

/** Sends the answer. Resolves when it was sent, broken off as its script says, or left by the client. */
export async function sendAnswer(answer: Answer, exchange: Exchange): Promise<void> {
  try {
    if (typeof answer === 'string') await play({ steps: [{ text: answer }] }, exchange)
    else if (Array.isArray(answer)) await play({ steps: answer }, exchange)
    else if ('steps' in answer) await play(answer, exchange)
    else if ('contextTooLong' in answer) await refuseAsTooLong(exchange)
    else await refuse(answer, exchange)
  } catch (cause) {
    if (!exchange.connection.signal.aborted) throw cause
  }
}

async function play(answer: ScriptedAnswer, exchange: Exchange): Promise<void> {
  const { wire, streamed, res, connection } = exchange
  const { acts, finish, stopSequence } = planAnswer(answer, stopsOf(exchange.call.body))
  const call = { ...exchange.call, ...initialUsage(answer, exchange.call), opensWith: opening(acts) }
  const encoder = streamed ? wire.stream(call) : wholeEncoder(wire, call)
  const player = new Player({ res, encoder, connection, fail: (failure) => sendStatus(failure, exchange) })
  res.setHeader('content-type', streamed ? 'text/event-stream; charset=utf-8' : 'application/json')
  if (streamed) {
    res.setHeader('cache-control', 'no-cache')
    res.flushHeaders()
  }
  const failsAtOnce = acts[0] !== undefined && 'error' in acts[0]
  if (wire.opensBeforeFailing || !failsAtOnce) await player.write(encoder.open())
  if (!(await player.play(acts))) return
  const usage = { ...call.usage, output: player.sent, ...answer.usage }
  const end = encoder.close({ finish, rawFinish: answer.rawFinish, stopSequence, usage })
  if (!answer.afterFinish) return void res.end(end)
  await player.write(end.replace(LAST_EVENT, ''))
  await player.play(AFTER_FINISH[answer.afterFinish])
}

/** What follows the finish reason as an event of its own. Google's and OpenAI's responses have no such event. */
const LAST_EVENT = /data: \[DONE\]\n\n$|event: message_stop\n.*\n\n$/

const COMMENTS: Act[] = Array.from({ length: 500 }, () => [{ raw: ': still here\n\n' }, { wait: 20 }]).flat()

const AFTER_FINISH: Record<NonNullable<ScriptedAnswer['afterFinish']>, Act[]> = {
  silence: [{ hang: true }],
  comments: COMMENTS,
  reset: [{ reset: true }],
}

/** The usage of the call before the model has written anything. */
function initialUsage({ usage }: ScriptedAnswer, call: Call): Pick<Call, 'usage'> {
  return { usage: { ...call.usage, ...usage, output: 0, reasoning: 0 } }
}

function opening(acts: Act[]): Call['opensWith'] {
  const first = acts.find((act) => 'say' in act || 'tokens' in act || 'call' in act)
  if (first && 'call' in first) return 'tool'
  return first && 'say' in first ? first.say : 'text'
}

function refuseAsTooLong(exchange: Exchange): Promise<void> {
  const { wire, streamed } = exchange
  if (streamed && wire.opensBeforeFailing) return play({ steps: [{ error: wire.contextTooLong }] }, exchange)
  return refuse(wire.contextTooLong, exchange)
}

async function refuse(refusal: Refusal, exchange: Exchange): Promise<void> {
  if ('status' in refusal) return sendStatus(refusal, exchange)
  if ('resetBeforeHeaders' in refusal) return exchange.connection.reset()
  await once(exchange.connection.signal, 'abort')
}

function sendStatus(answer: StatusAnswer, { wire, call, res }: Exchange): void {
  const { status, body = wire.errorBody(answer, call.id, answer.retryAfter), headers = {}, retryAfter } = answer
  const wait = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
  res.writeHead(status, { 'content-type': 'application/json', ...wait, ...headers })
  res.end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** Sends an error for a request that matches no format, or for a script that throws. */
export function sendError(res: ServerResponse, status: number, message: string): void {
  res.writeHead(status, { 'content-type': 'application/json' })
  res.end(JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: null } }))
}
