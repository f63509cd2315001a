import type { Schema } from '../api.ts'
import { type ApiError, ConnectionFailed, objectIn, wrongAnswer } from '../errors.ts'
import type { OpenStream } from './open-stream.ts'
import { backoffMs, sleep } from './wait.ts'

/** A number, but for the events of a tenant. */
export type EventId = string | number

/** An event with its data read. */
export type FollowedEvent = { id: EventId; event: string; data: unknown }

export type Followed = {
  /** Opens the stream behind an event, in as many attempts as that takes. */
  open(after: EventId | undefined): Promise<OpenStream>
  /** Whether an `error` ends the run or plan that is followed, and not only this connection. Default: never. */
  isEnd?: IsEnd
  /**
   * Given where the ids are no numbers that rise: a connection without one says nothing of what came before it, so from the second one on
   * it begins with a `reset`, and the first one does, too, when this is true.
   */
  mayMiss?: boolean
  after?: EventId | undefined
  signal: AbortSignal | undefined
}

export type IsEnd = (data: StreamError, found: Found) => boolean

type StreamError = Partial<Schema<'ErrorData'>> & { trace_id?: string }

/** `isKnown`: the error has the number of the last event. `before`: the code of the error that ended the connection before, without an event since. */
type Found = { isKnown: boolean; before: string | undefined }

/** The events that end a run, of an agent, a flow or a plan. */
export const LAST: readonly string[] = ['done', 'error', 'plan_queued', 'result', 'plan_ended']

/**
 * A run or a plan is given up after this many connections in a row without an event. With our pauses that takes about 25 minutes, and permission
 * requests wait for less. Of a tenant nothing may happen for days.
 */
const MOST_SILENT = 400

/**
 * Reads a stream to its last event over as many connections as that takes, each event once and in order. Behind the last event it reads to
 * the end of the answer, so that the connection can be used again. Ends, too, when the server says that nothing follows (204). Throws what
 * no further attempt can mend.
 */
export async function* follow({
  open,
  isEnd,
  after: last,
  mayMiss,
  signal,
}: Followed): AsyncGenerator<FollowedEvent, void, undefined> {
  const isNumbered = mayMiss === undefined
  let before: string | undefined
  let isEnded: boolean | undefined
  let broken = 0 // Connections since the last event.
  for (;;) {
    const stream = await open(last || undefined)
    try {
      if (stream.response.status === 204) return
      if (mayMiss && !last) yield { id: '', event: 'reset', data: {} }
      mayMiss = !isNumbered
      for await (const { id: name, event, data: text } of stream.events) {
        const id = isNumbered ? Number(name) : name
        const isKnown = isNumbered && id <= (last || -1) // 0 is the number of a warning ahead of the first event (D39.2).
        const isError = event === 'error'
        if (isEnded || (isKnown && !isError)) continue
        const data = (id === id && objectIn(text)) || wrongAnswer(name + text)
        isEnded = isError ? isEnd?.(data, { isKnown, before }) : LAST.includes(event)
        before = isError ? (data as StreamError).code : undefined
        if (isError && !isEnded) break
        last = id
        broken = 0
        yield { id, event, data }
      }
    } catch (cause) {
      if (!isEnded && ((cause as ApiError).retryAfterMs || !(cause instanceof ConnectionFailed))) throw cause
    } finally {
      stream.abort.abort()
    }
    if (isEnded) return
    if (++broken > MOST_SILENT && isNumbered) throw new ConnectionFailed('no event came')
    await sleep(stream.retryMs ?? backoffMs(broken), signal)
  }
}
