import { type ErrorEvent, errorEvent, type RunErrorCode, type RunEvent, sessionKept } from '../../kernel/events.ts'
import { frameJson } from '../../kernel/json.ts'
import type { Frames } from './frame-stream.ts'

/** Renders an event as its SSE frame (D4.2). It is rendered once; from here on the text is passed through unparsed. */
export const renderFrame = (seq: number, event: RunEvent): string => frameOf(seq, event.type, renderData(event))

/** The fields of an event as JSON, which are the data of its frame. */
export function renderData(event: RunEvent): string {
  // JSON leaves out a property that is undefined. Building a copy without `type` would take twice the time.
  return frameJson({ ...event, type: undefined })
}

/** The frame of an event with this data. */
export const frameOf = (seq: number, type: RunEvent['type'], data: string): string =>
  `id: ${seq}\nevent: ${type}\ndata: ${data}\n\n`

/**
 * The number of the terminal frame of a lost run whose last number is unknown: it is above every event's number, so a client that reconnects
 * with it has all events.
 */
export const LOST_SEQ = 2 ** 32 - 1

/** Codes of the terminal frames that end one reader's stream without ending the run. */
export type ReaderFailure = Extract<
  RunErrorCode,
  'worker_lost' | 'worker_draining' | 'relay_unavailable' | 'stream_gap' | 'slow_consumer' | 'cancelled' | 'internal'
>

const MESSAGE: Record<ReaderFailure, string> = {
  worker_lost: 'the worker of this run failed and the run is lost; send the request again',
  worker_draining: 'this server is shutting down and the run continues; follow the run again to reach another server',
  relay_unavailable: 'the connection to the worker was lost; follow the run again to continue',
  stream_gap:
    'the next events of this stream could not be delivered; follow the run again, or read its status if this repeats',
  slow_consumer: 'the client did not read the stream fast enough; follow the run again to continue',
  cancelled: 'the run was cancelled before it began',
  internal: 'internal error',
}

const SESSION_KEPT =
  'the worker of this run failed and the answer is lost; the session is kept up to its last complete turn: send the message again'

/** `isSessionKept`: another worker continues the session of a lost run. */
export type FailureFacts = { isSessionKept?: boolean }

/** The event that ends one reader's stream while the run itself may continue. */
export const readerFailure = (code: ReaderFailure, { isSessionKept = false }: FailureFacts = {}): ErrorEvent =>
  isSessionKept && code === 'worker_lost' ? sessionKept(SESSION_KEPT) : errorEvent(code, MESSAGE[code])

/**
 * Renders the terminal frame that ends one reader's stream while the run itself may continue. It repeats the number of the last
 * frame delivered, so a client that reconnects with that number misses nothing (D4.2).
 */
export function renderReaderFailure(lastSeq: number, code: ReaderFailure, facts?: FailureFacts): string {
  return renderFrame(lastSeq, readerFailure(code, facts))
}

/** The failure as the last value of a stream. */
export const failureFrame = (lastSeq: number, failure: ReaderFailure, facts?: FailureFacts): Frames => ({
  text: renderReaderFailure(lastSeq, failure, facts),
  lastSeq,
  failure,
})
