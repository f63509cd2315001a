import type { RunErrorCode } from '../../kernel/events.ts'

/** A place in a run's frames: after frame `seq`, and after this number of pieces of the next one when that one is large. */
export type Position = { seq: number; pieces: number }

/** SSE frames, ready to be written to the client. The last complete frame, in this text or before it, has number `lastSeq`. */
export type Frames = {
  text: string | Uint8Array
  lastSeq: number
  /** Set when the text ends inside frame `lastSeq + 1`, which is large: how many of its pieces have come by now. */
  pieces?: number
  /** Set on the terminal frame that ends one reader's stream while the run itself may continue (D4.2). */
  failure?: RunErrorCode
}

/**
 * A run's frames from a given number on: first those that the journal holds, then each new one. Frames that are available in
 * the same event-loop turn arrive as one value. Ends after the terminal frame. A reader that leaves early returns the iterator,
 * which detaches it from the run (D4.5b).
 */
export type FrameStream = AsyncIterable<Frames> & {
  /** Sets the one listener, which is called when the last frames are read. Missing where a worker cannot die without the gateway. */
  onLast?(listener: (last: Frames) => void): void
}

/**
 * One reader's position in a run's frames, read step by step. The relay uses it to pack the frames of many runs into one message.
 * A cursor counts as a reader of its run until it is closed.
 */
export interface FrameCursor {
  /** Number of the last frame taken. */
  readonly seq: number
  /** How many pieces of the next frame were taken. */
  readonly pieces: number
  readonly state: 'waiting' | 'ready' | 'ended'
  /** Sets the listener; a cursor has one. It is called at most once per event-loop turn, when the state may have changed. */
  subscribe(listener: () => void): void
  /** Returns the available frames, or a piece of a large one, when the state is `ready`; `undefined` when the next is not kept. */
  take(): Frames | undefined
  /** Moves the position, back or forward. */
  seek(position: Position): void
  /**
   * Reports that the client has read everything up to this position. Call it once before the first `take` when the frames are taken
   * on behalf of a remote client. Without it, a frame counts as read when it is taken.
   */
  confirmRead(position: Position): void
  /** `true` while the reader is so far behind that the run waits for it. */
  readonly isTooFarBehind: boolean
  /** Removes the reader from the run. */
  close(): void
}
