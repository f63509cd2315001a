import { AppError, type ErrorKind, toAppError } from '../../../kernel/errors.ts'
import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import { currentLink, type TraceLink } from '../../../kernel/trace.ts'
import type { Inbox } from '../../commands/inbox.ts'
import type { SessionKey } from '../../owners/owners.ts'
import { MalformedMessage } from './records.ts'

type StreamMethod = 'startRun' | 'sendMessage' | 'followRun'

/**
 * The methods that a worker offers to other processes. Gateways call the methods of `Inbox`; those that open a stream take
 * the gateway's number for the stream as their last argument, and the frames come as records. A gateway accepts a run by its first
 * report of a read position. A draining worker calls `adoptSession`.
 */
export type WorkerMethods = { [M in Exclude<keyof Inbox, StreamMethod | 'acceptRun'>]: Inbox[M] } & {
  [M in Exclude<StreamMethod, 'followRun'>]: (...args: StreamArgs<M>) => void
} & {
  /** Returns the number of the frame after which the stream begins: that of the run's last frame when a higher one was given. */
  followRun(...args: StreamArgs<'followRun'>): number
  adoptSession(state: unknown): void
  /** Takes over the sessions of a dead worker and opens them. Returns for each whether it is open here. */
  inheritSessions(from: number, sessions: readonly SessionKey[]): Promise<boolean[]>
}

type StreamArgs<M extends StreamMethod> = [...Parameters<Inbox[M]>, stream: number]

export type WorkerMethod = keyof WorkerMethods
export type CallArgs<M extends WorkerMethod> = Parameters<WorkerMethods[M]>
export type CallResult<M extends WorkerMethod> = Awaited<ReturnType<WorkerMethods[M]>>

/**
 * A call as it was received: the caller is a process of this cluster, but possibly of another release. `within_ms`: how long the caller waits for the answer,
 * from the moment in which the call is received.
 */
export type ReceivedCall = { method: string; args: unknown[]; within_ms?: number; trace?: TraceLink }

export const packCall = <M extends WorkerMethod>(method: M, args: CallArgs<M>, withinMs?: number): string =>
  JSON.stringify({
    method,
    args,
    ...(withinMs !== undefined && { within_ms: Math.max(0, Math.floor(withinMs)) }),
    ...traced(),
  } satisfies ReceivedCall)

function traced(): Pick<ReceivedCall, 'trace'> {
  const trace = currentLink()
  return trace ? { trace } : {}
}

/** Throws `MalformedMessage`. */
export function readCall(body: Buffer): ReceivedCall {
  const call = parseJson(body.toString()) as Partial<ReceivedCall> | undefined
  if (typeof call?.method !== 'string' || !Array.isArray(call.args)) throw new MalformedMessage('the call is malformed')
  const { method, args, within_ms, trace } = call
  return {
    method,
    args,
    ...(typeof within_ms === 'number' && { within_ms }),
    ...(isJsonObject(trace) && { trace }),
  }
}

type Answer =
  | { value: unknown }
  | {
      error: {
        kind: ErrorKind
        message: string
        param?: string
        code?: NonNullable<AppError['code']>
        status: number
        retryAfterSecs?: number
      }
    }

/** Runs the called method. A refusal becomes an answer, too; of a bug the caller learns only that it occurred. */
async function answerTo(run: () => unknown): Promise<string> {
  try {
    return JSON.stringify({ value: (await run()) ?? null } satisfies Answer)
  } catch (cause) {
    const { kind, message, param, code, status, retryAfterSecs } = toAppError(cause)
    const optional = { ...(param && { param }), ...(code && { code }), ...(retryAfterSecs && { retryAfterSecs }) }
    return JSON.stringify({ error: { kind, message, status, ...optional } } satisfies Answer)
  }
}

function readAnswer(body: Buffer): Answer {
  const answer = parseJson(body.toString())
  if (isJsonObject(answer) && ('value' in answer || isJsonObject(answer['error']))) return answer as Answer
  throw new MalformedMessage('the answer is malformed')
}

/** Returns the answer's value, or throws the refusal it carries. */
function unwrap(answer: Answer): unknown {
  if ('value' in answer) return answer.value
  const { kind, message, ...fields } = answer.error
  throw new AppError(kind, message, fields)
}

export type CallLimits = {
  deadlineMs: number
  /** The call is sent again this often until it is answered: the bus may have lost it, or its answer. */
  resendMs: number
  /** The call fails after this time if the process does not even confirm that it is working on it; by default after `deadlineMs`. */
  silentMs?: number
}

const CALL_MS = 1_000
const CALL_LIMITS: CallLimits = { deadlineMs: CALL_MS, resendMs: 250 }

export type CallRequest = {
  epoch: number
  /** `withinMs`: how long the caller still waits. */
  send: (id: number, withinMs: number) => void
  /** Set when the caller can try another process: the call fails at once if a message to this one has no subscriber. */
  hasAlternative?: boolean
  limits?: Partial<CallLimits>
}

type PendingCall = {
  epoch: number
  hasAlternative: boolean
  /** Called when the process confirms that it is working on the call. */
  onWorking: () => void
  resolve: (answer: Answer) => void
  reject: (error: AppError) => void
}

/** The calls of this process that have no answer yet. */
export class Calls {
  readonly #pending = new Map<number, PendingCall>()
  #lastId = 0

  /** Calls the process of this epoch. Throws its refusal, or `unavailable` (`worker_silent`) when it does not answer. */
  async call({ epoch, send, hasAlternative = false, limits }: CallRequest): Promise<unknown> {
    const { resendMs, deadlineMs, silentMs = deadlineMs } = { ...CALL_LIMITS, ...limits }
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const until = performance.now() + deadlineMs
    // An answer that arrived while this process had no CPU is read first: in that case the worker was not silent.
    const fail = () => setImmediate(() => reject(unanswered()))
    const silence = setTimeout(fail, Math.min(silentMs, deadlineMs))
    const deadline = setTimeout(fail, deadlineMs)
    this.#pending.set(id, { epoch, hasAlternative, onWorking: () => clearTimeout(silence), resolve, reject })
    const sendNow = () => send(id, until - performance.now())
    sendNow()
    const resend = setInterval(sendNow, resendMs)
    try {
      return unwrap(await promise)
    } finally {
      clearInterval(resend)
      clearTimeout(silence)
      clearTimeout(deadline)
      this.#pending.delete(id)
    }
  }

  /** Settles a call with the answer that was received for it. Throws `MalformedMessage`. */
  settle(id: number, body: Buffer): void {
    this.#pending.get(id)?.resolve(readAnswer(body))
  }

  /** Notes that the process has received a call and is working on it. */
  onWorking(id: number): void {
    this.#pending.get(id)?.onWorking()
  }

  /** Called when a message to this process had no subscriber: fails the calls that can be made to another process. */
  failUndelivered(epoch: number): void {
    for (const call of this.#pending.values()) {
      if (call.epoch === epoch && call.hasAlternative) call.reject(unanswered())
    }
  }

  /** Fails all calls to a process that is no longer a member. */
  failAll(epoch: number): void {
    for (const call of this.#pending.values()) if (call.epoch === epoch) call.reject(unanswered())
  }

  /** Fails all calls, because this process leaves. */
  close(): void {
    for (const call of this.#pending.values()) call.reject(unanswered())
  }
}

const unanswered = () =>
  new AppError('unavailable', 'the worker does not answer; try again', { retryAfterSecs: 1, code: 'worker_silent' })

const KEEP_MS = 10_000
/** Old answers are deleted in groups, because iterating a Map also passes the places of recently deleted entries. */
const DELETE_EVERY_MS = 1_000

/** Runs each call once, however often it was sent, and keeps its answer for the repetitions. */
export class AnsweredCalls {
  readonly #answers = new Map<string, { at: number; answer: Promise<string>; isUnderWay: boolean }>()
  #deletedAt = -Infinity

  answer(epoch: number, id: number, run: () => unknown): Promise<string> {
    const now = performance.now()
    if (now - this.#deletedAt >= DELETE_EVERY_MS) this.#deleteOld(now)
    const key = keyOf(epoch, id)
    const known = this.#answers.get(key)
    if (known) return known.answer
    const entry = { at: now, answer: answerTo(run), isUnderWay: true }
    void entry.answer.then(() => {
      entry.isUnderWay = false
    })
    this.#answers.set(key, entry)
    return entry.answer
  }

  /** Whether the call has come before, and has no answer yet. */
  isUnderWay(epoch: number, id: number): boolean {
    return this.#answers.get(keyOf(epoch, id))?.isUnderWay ?? false
  }

  #deleteOld(now: number): void {
    this.#deletedAt = now
    const before = now - KEEP_MS
    for (const [key, { at }] of this.#answers) {
      if (at > before) return
      this.#answers.delete(key)
    }
  }
}

const keyOf = (epoch: number, id: number): string => `${epoch} ${id}`
