import type { Schema } from '../api.ts'
import { ApiError, ConnectionFailed } from '../errors.ts'
import type { OpenStream } from './open-stream.ts'
import { backoffMs, sleep } from './wait.ts'

/** An event with its data read. `id` is a number but for the events of a tenant. */
export type FollowedEvent = { id: string; event: string; data: unknown }

export type Followed = {
  /** Opens the stream behind an event, in one attempt. */
  open(after: string | undefined): Promise<OpenStream>
  /** Whether another attempt may succeed. Default: after a failure of the connection, 429 and 5xx. */
  mayRetry?(cause: unknown): boolean
  /** Whether an `error` is the end of what the stream tells of, and not of this connection. Default: never. */
  isEnd?: IsEnd
  /**
   * Given where the ids are no numbers that rise: a connection without one says nothing of what came before it, so from the second one on
   * it begins with a `reset`, and the first one does, too, when this is true.
   */
  mayMiss?: boolean
  after: string | undefined
  signal: AbortSignal | undefined
  /** How long it looks for a server that answers. */
  resumeMs: number
  /** How long it goes on with a server that answers and sends no event over connections that break. Default: without end. */
  patienceMs?: number
}

export type IsEnd = (data: StreamError, found: Found) => boolean

type StreamError = Partial<Schema<'ErrorData'>> & { trace_id?: string }

/** `isKnown`: the error has the number of the last event. `before`: the code of the error that ended the connection before, without an event since. */
type Found = { isKnown: boolean; before: string | undefined }

/** The events that end a run, of an agent, a flow or a plan. */
export const LAST: ReadonlySet<string> = new Set(['done', 'error', 'plan_queued', 'result', 'plan_ended'])

/**
 * Reads a stream to its last event over as many connections as that takes, each event once and in order. Behind the last event it reads to
 * the end of the answer, so that the connection can be used again. Ends, too, when the server says that nothing follows (204). Throws what
 * no further attempt can mend.
 */
export async function* follow(followed: Followed): AsyncGenerator<FollowedEvent, void, undefined> {
  const { open, mayRetry = isPassing, isEnd = () => false, signal } = followed
  const outage = new Outage(followed)
  let { after: last, mayMiss } = followed
  const isNumbered = mayMiss === undefined
  let before: string | undefined
  let isEnded = false
  while (!isEnded) {
    let failure: unknown
    try {
      const { response, events, parser } = await open(last || undefined)
      if (response.status === 204) return
      outage.isAnswered()
      if (mayMiss && !last) yield { id: '', event: 'reset', data: {} }
      if (!isNumbered) mayMiss = true
      for await (const { id, event, data: text } of events) {
        const isKnown = isNumbered && Number(id) <= Number(last ?? 0)
        const isError = event === 'error'
        if (isEnded || (isKnown && !isError)) continue
        const data: unknown = JSON.parse(text)
        isEnded = isError ? isEnd(data as StreamError, { isKnown, before }) : LAST.has(event)
        before = isError ? (data as StreamError).code : undefined
        if (isError && !isEnded) break
        last = id
        outage.isOver()
        yield { id, event, data }
      }
      outage.retryMs = parser.retryMs
    } catch (cause) {
      if (isEnded) return
      signal?.throwIfAborted()
      if (!mayRetry(cause)) throw cause
      failure = cause
    }
    if (!isEnded) await sleep(outage.pauseMs(failure), signal)
  }
}

export const isPassing = (cause: unknown): boolean =>
  cause instanceof ConnectionFailed || (cause instanceof ApiError && (cause.status === 429 || cause.status >= 500))

const FIRST_PAUSE_MS = 100
/** A longer pause that a server asks for is too long. */
const MOST_ASKED_MS = 60_000

/** The time since a stream broke, and the pauses in it. */
class Outage {
  readonly #limits: Followed
  /** The pause that the stream has asked for. */
  retryMs: number | undefined
  #failures = 0
  #brokenSince: number | undefined
  #unansweredSince: number | undefined

  constructor(limits: Followed) {
    this.#limits = limits
  }

  isAnswered(): void {
    this.#unansweredSince = undefined
  }

  isOver(): void {
    this.#failures = 0
    this.#brokenSince = undefined
  }

  /** How long to wait before the next attempt. Throws when there were enough. */
  pauseMs(failure: unknown): number {
    const { resumeMs, patienceMs = Number.POSITIVE_INFINITY } = this.#limits
    const now = performance.now()
    this.#unansweredSince ??= now
    this.#brokenSince ??= now
    if (now - this.#unansweredSince > resumeMs || now - this.#brokenSince > patienceMs)
      throw new ConnectionFailed('the stream could not be resumed', { cause: failure })
    const asked = failure instanceof ApiError ? failure.retryAfterMs : this.retryMs
    return Math.min(MOST_ASKED_MS, asked ?? backoffMs(++this.#failures, FIRST_PAUSE_MS))
  }
}
