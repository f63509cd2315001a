import type { Schema } from '../api.ts'
import { type ApiError, ConnectionFailed, objectIn, wrongAnswer } from '../errors.ts'
import type { OpenStream } from './open-stream.ts'
import { backoffMs, sleep } from './wait.ts'

/** A number, except for the events of a tenant. */
export type EventId = string | number

/** An event with its parsed data. */
export type FollowedEvent = { id: EventId; event: string; data: unknown }

export type Followed = {
  /** Opens the stream after an event, with repeated attempts if needed. */
  open(after: EventId | undefined): Promise<OpenStream>
  /** Whether an `error` ends the run or plan that is followed, and not only this connection. Default: never. */
  isEnd?: IsEnd
  /**
   * Set for streams whose ids are not rising numbers. As long as no id is known events may be missed between connections, so each
   * connection from the second one on begins with a `reset`; with `true` the first one does, too.
   */
  reset?: boolean
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
 * A run or a plan is given up after this many connections in a row without an event. With our pauses that takes about 25 minutes; permission
 * requests wait for a shorter time. A tenant's stream is never given up, because it may have no event for days.
 */
const MOST_SILENT = 400

/**
 * Reads a stream to its last event over as many connections as needed, each event once and in order. After the last event it reads to the
 * end of the answer, so that the connection can be used again. It also ends when the server says that nothing follows (204). Throws errors
 * that a further attempt cannot solve.
 */
export async function* follow({
  open,
  isEnd,
  after: last,
  reset,
  signal,
}: Followed): AsyncGenerator<FollowedEvent, void, undefined> {
  const isNumbered = reset === undefined
  let before: string | undefined
  let isEnded: boolean | undefined
  let broken = 0 // Connections since the last event.
  for (;;) {
    const stream = await open(last || undefined)
    try {
      if (stream.response.status === 204) return
      if (reset && !last) yield { id: '', event: 'reset', data: {} }
      reset = !isNumbered
      for await (const { id: name, event, data: text } of stream.events) {
        const id = isNumbered ? Number(name) : name
        const isKnown = isNumbered && id <= (last || -1) // 0 is the number of a warning before the first event (D39.2).
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
