import type { ReaderFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, RunEvent } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import type { OpenCalls } from './open-calls.ts'

/**
 * A run in another format. Its state is made by the events alone, so a reader that replays the journal has the state of every other, and
 * nothing needs to be stored to go on with a response.
 */
export interface Projection<Chunk, Event extends RunEvent = AgentEvent> {
  /** The chunks that a response begins with: that of the request that started the run, or of one that goes on with it. */
  begin(): Chunk[]
  /** The chunks that one more event adds, for the last event of a run those of the response's end. `calls` are those after the event. */
  take(numbered: Numbered<Event>, calls: OpenCalls): Chunk[]
  /** The chunks that end a response while the run waits for permission. Left out where responses go on over that. */
  pause?(calls: OpenCalls): Chunk[]
  /** Drops the chunks so far, which belong to earlier responses: this one begins here. */
  restart?(): void
  /** The chunks of a response that the gateway cuts off while the run may go on. */
  cut(code: ReaderFailure): Chunk[]
}

/** The part of a run that one response tells. */
export type Part = {
  /**
   * The permission requests that earlier responses have told the client of. This response begins where the last of those ended. Without
   * any it begins with the run.
   */
  known?: ReadonlySet<string> | undefined
  /** Those of them that are answered by now, by default all: where only these wait the run is about to go on. */
  answered?: ReadonlySet<string> | undefined
  /** The number of pauses that earlier responses have ended with, for a format that counts its responses. */
  pauses?: number | undefined
  /**
   * Which of these responses, counted from 1, began while a request was left unanswered. Every other one passes a pause in which only requests wait
   * that were there when it began: they have been answered.
   */
  partials?: readonly number[] | undefined
  /** The number of events that are passed without a pause, because the run has gone on since. */
  passed?: number | undefined
  /** The response tells only the next pause behind this number of events, or the end of the run. */
  silentUntil?: number | undefined
}
