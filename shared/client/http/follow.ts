import { ApiError, ConnectionFailed } from '../errors.ts'
import type { OpenStream } from './open-stream.ts'
import type { SseEvent } from './sse.ts'
import { backoffMs, sleep } from './wait.ts'

/** The meaning of an event for its reader. `broken`: the stream ends and what it tells of goes on. `known`: it was read before. */
export type Meaning = 'next' | 'known' | 'last' | 'broken'

export type Followed = {
  /** Opens the stream behind an event, in one attempt. */
  open(after: string | undefined): Promise<OpenStream>
  /** Whether another attempt may succeed. Default: after a failure of the connection, 429 and 5xx. */
  mayRetry?(cause: unknown): boolean
  /** The meaning of the event behind the last one that was read. */
  meaningOf(event: SseEvent, last: string | undefined): Meaning
  after: string | undefined
  signal: AbortSignal | undefined
  /** How long it looks for a server that answers. */
  resumeMs: number
  /** How long it goes on with a server that answers and sends no event over connections that break. Default: without end. */
  patienceMs?: number
}

/**
 * Reads a stream to its last event over as many connections as that takes, each event once and in order. Behind the last event it reads to
 * the end of the answer, so that the connection can be used again. Ends, too, when the server says that nothing follows (204). Throws what
 * no further attempt can mend.
 */
export async function* follow(followed: Followed): AsyncGenerator<SseEvent, void, undefined> {
  const { open, mayRetry = isPassing, meaningOf, signal } = followed
  const outage = new Outage(followed)
  let last = followed.after
  let isEnded = false
  while (!isEnded) {
    let failure: unknown
    try {
      const { status, events, retryMs } = await open(last)
      if (status === 204) return
      outage.isAnswered()
      for await (const event of events) {
        const meaning: Meaning = isEnded ? 'known' : meaningOf(event, last)
        if (meaning === 'broken') break
        if (meaning === 'known') continue
        last = event.id
        isEnded = meaning === 'last'
        outage.isOver()
        yield event
      }
      outage.retryMs = retryMs()
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
const MOST_PAUSE_MS = 5_000
/** A longer pause that a server asks for is too long. */
const MOST_ASKED_MS = 60_000

/** The time since a stream broke, and the pauses in it. */
class Outage {
  readonly #resumeMs: number
  readonly #patienceMs: number
  /** The pause that the stream has asked for. */
  retryMs: number | undefined
  #failures = 0
  #brokenSince: number | undefined
  #unansweredSince: number | undefined

  constructor({ resumeMs, patienceMs = Number.POSITIVE_INFINITY }: Followed) {
    this.#resumeMs = resumeMs
    this.#patienceMs = patienceMs
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
    const now = performance.now()
    this.#unansweredSince ??= now
    this.#brokenSince ??= now
    const isGivenUp = now - this.#unansweredSince > this.#resumeMs || now - this.#brokenSince > this.#patienceMs
    if (isGivenUp) throw new ConnectionFailed('the stream broke and could not be resumed', { cause: failure })
    const asked = failure instanceof ApiError ? failure.retryAfterMs : this.retryMs
    return Math.min(MOST_ASKED_MS, asked ?? backoffMs(++this.#failures, FIRST_PAUSE_MS, MOST_PAUSE_MS))
  }
}
