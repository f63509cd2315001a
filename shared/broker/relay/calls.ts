import { AppError, type ErrorKind, toAppError } from '../../errors.ts'

/** A call to another process: a method's name and its arguments, as JSON. */
export type Call = { method: string; args: unknown[] }

type Answer =
  | { value: unknown }
  | {
      error: {
        kind: ErrorKind
        message: string
        param?: string
        code?: string
        status: number
        retryAfterSecs?: number
      }
    }

export const packCall = (call: Call): string => JSON.stringify(call)
export const readCall = (body: Buffer): Call => JSON.parse(body.toString()) as Call

/** Runs what was called; a refusal is an answer like any other, and what is not one says no more than that. */
async function answerTo(work: () => unknown): Promise<string> {
  try {
    return JSON.stringify({ value: (await work()) ?? null } satisfies Answer)
  } catch (cause) {
    const { kind, message, param, code, status, retryAfterSecs } = toAppError(cause)
    const optional = { ...(param && { param }), ...(code && { code }), ...(retryAfterSecs && { retryAfterSecs }) }
    return JSON.stringify({ error: { kind, message, status, ...optional } } satisfies Answer)
  }
}

function read(body: Buffer): unknown {
  const answer = JSON.parse(body.toString()) as Answer
  if ('value' in answer) return answer.value
  const { kind, message, ...fields } = answer.error
  throw new AppError(kind, message, fields)
}

export type CallLimits = {
  /** After this the caller gives up with `unavailable`. */
  deadlineMs: number
  /** A call that was not answered is sent again: pub/sub may have lost it, or its answer. */
  againMs: number
}

const CALL_LIMITS: CallLimits = { deadlineMs: 1_000, againMs: 250 }

export type Calling = {
  epoch: number
  send: (id: number) => void
  /** Another process can be called instead, so that this one is given up as soon as nobody hears it. */
  isMovable?: boolean
  limits?: Partial<CallLimits>
}

type Waiting = {
  epoch: number
  isMovable: boolean
  resolve: (body: Buffer) => void
  reject: (error: AppError) => void
}

/** The calls of this process that wait for their answers. */
export class Calls {
  readonly #waiting = new Map<number, Waiting>()
  #last = 0

  /** Calls the process of this epoch. Throws what the other side refuses with, or `unavailable` when it does not answer. */
  async make({ epoch, send, isMovable = false, limits }: Calling): Promise<unknown> {
    const { againMs, deadlineMs } = { ...CALL_LIMITS, ...limits }
    const id = ++this.#last
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    this.#waiting.set(id, { epoch, isMovable, resolve, reject })
    send(id)
    const again = setInterval(() => send(id), againMs)
    const deadline = setTimeout(() => reject(silent()), deadlineMs)
    try {
      return read(await promise)
    } finally {
      clearInterval(again)
      clearTimeout(deadline)
      this.#waiting.delete(id)
    }
  }

  /** An answer has come. */
  settle(id: number, body: Buffer): void {
    this.#waiting.get(id)?.resolve(body)
  }

  /** Nobody listened when the last message to this process was sent. */
  unheard(epoch: number): void {
    for (const waiting of this.#waiting.values()) {
      if (waiting.epoch === epoch && waiting.isMovable) waiting.reject(silent())
    }
  }

  /** The process of this epoch is gone: nobody will answer. */
  abandon(epoch: number): void {
    for (const waiting of this.#waiting.values()) if (waiting.epoch === epoch) waiting.reject(silent())
  }
}

const silent = () =>
  new AppError('unavailable', 'the worker does not answer; try again', { retryAfterSecs: 1, code: 'worker_silent' })

const REMEMBER_MS = 10_000

/** Answers each call once, however often it is sent, and says the same again. */
export class AnsweredCalls {
  readonly #answers = new Map<string, { at: number; answer: Promise<string> }>()

  answer(epoch: number, id: number, work: () => unknown): Promise<string> {
    this.#forgetOld()
    const key = `${epoch} ${id}`
    const known = this.#answers.get(key)
    if (known) return known.answer
    const answer = answerTo(work)
    this.#answers.set(key, { at: performance.now(), answer })
    return answer
  }

  #forgetOld(): void {
    const before = performance.now() - REMEMBER_MS
    for (const [key, { at }] of this.#answers) {
      if (at > before) return
      this.#answers.delete(key)
    }
  }
}
