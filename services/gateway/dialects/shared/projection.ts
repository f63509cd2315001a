import type { ReaderFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, RunEvent } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import type { OpenCalls } from './open-calls.ts'

/**
 * Converts the events of a run to another format. Its state depends on the events alone, so each reader that replays the journal has the
 * same state, and nothing is stored to continue a response.
 */
export interface Projection<Chunk, Event extends RunEvent = AgentEvent> {
  /** The chunks with which a response begins, both for the request that started the run and for one that continues it. */
  begin(): Chunk[]
  /** The chunks for the next event; for the last event of a run also those that end the response. `calls` is the state after the event. */
  take(numbered: Numbered<Event>, calls: OpenCalls): Chunk[]
  /** The chunks that end a response while the run waits for permission. Undefined for formats whose responses continue through pauses. */
  pause?(calls: OpenCalls): Chunk[]
  /** Forgets the chunks so far, which belong to earlier responses: this response begins here. */
  restart?(): void
  /** The chunks of a response that the gateway cuts off while the run may go on. */
  cut(code: ReaderFailure): Chunk[]
}

/** The part of a run that one response shows. */
export type Part = {
  /**
   * The permission requests that earlier responses have shown. This response begins where the last of those responses ended; without
   * any it begins with the run.
   */
  known?: ReadonlySet<string> | undefined
  /** Those of `known` that are answered by now, by default all: if the run waits only for these, it is about to continue. */
  answered?: ReadonlySet<string> | undefined
  /** The number of pauses that earlier responses have ended with, for a format that counts its responses. */
  pauses?: number | undefined
  /**
   * Which of these responses, counted from 1, began while a request was left unanswered. Every other response continues through a pause in which
   * all waiting requests were there when it began: they have been answered.
   */
  partials?: readonly number[] | undefined
  /** The number of first events in which pauses are ignored, because the run has continued since. */
  passed?: number | undefined
  /** The response shows only the first pause after this number of events, or the end of the run. */
  silentUntil?: number | undefined
}
