import { type AgentEvent, errorEvent, type RunErrorCode } from '../../events.ts'

/** Renders an event as its SSE frame, once and for all (D4.2): everything after this moves text and looks at numbers only. */
export function renderFrame(seq: number, event: AgentEvent): string {
  // JSON leaves out what is undefined; taking the type out first costs as much again as the rest.
  return `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify({ ...event, type: undefined })}\n\n`
}

type ReaderFailure = Extract<
  RunErrorCode,
  'worker_lost' | 'worker_draining' | 'relay_unavailable' | 'stream_gap' | 'slow_consumer' | 'internal'
>

const MESSAGE: Record<ReaderFailure, string> = {
  worker_lost: 'the worker that ran this was lost',
  worker_draining: 'this server is shutting down; the run goes on: follow it through another',
  relay_unavailable: 'the connection to the worker was lost',
  stream_gap: 'events that this stream should go on with are no longer kept',
  slow_consumer: 'the stream was not read fast enough and has been cut off',
  internal: 'internal error',
}

/**
 * The end of one reader's stream that is not the end of the run. It repeats the number of the last frame delivered, so that a
 * reader who comes back with it misses nothing (D4.2).
 */
export function renderReaderFailure(lastSeq: number, code: ReaderFailure): string {
  return renderFrame(lastSeq, errorEvent(code, MESSAGE[code]))
}
