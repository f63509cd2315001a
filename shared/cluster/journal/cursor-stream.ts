import { eventLoop } from '../../kernel/async/loop-budget.ts'
import { LATER, PullIterator } from '../../kernel/async/pull-iterator.ts'
import type { FrameCursor, Frames } from './frame-stream.ts'
import { failureFrame } from './frames.ts'

/**
 * Iterates over the frames of a cursor. Ends with the run, or with a terminal error frame when the journal no longer holds the
 * next frame: `stream_gap` on the first read, `slow_consumer` later.
 */
export class CursorStream extends PullIterator<Frames> {
  readonly #cursor: FrameCursor
  #hasRead = false
  /** Whether the next read continues a large frame. */
  #isInsideFrame = false

  constructor(cursor: FrameCursor) {
    super()
    this.#cursor = cursor
    cursor.subscribe(() => this.wake())
  }

  protected override pull(): Frames | undefined | typeof LATER | Promise<Frames | undefined> {
    if (this.#cursor.state === 'waiting') return LATER
    if (this.#isInsideFrame) return this.#takePiece()
    return this.#takeNext()
  }

  protected override stop(): void {
    this.#cursor.close()
  }

  async #takePiece(): Promise<Frames | undefined> {
    await eventLoop.enter()
    return this.#takeNext()
  }

  #takeNext(): Frames | undefined {
    return this.#cursor.state === 'ended' ? undefined : this.#take()
  }

  #take(): Frames {
    const frames = this.#cursor.take()
    const isFirst = !this.#hasRead
    this.#hasRead = true
    this.#isInsideFrame = frames?.pieces !== undefined
    return frames ?? this.#closeWithGap(isFirst)
  }

  #closeWithGap(isFirst: boolean): Frames {
    const { seq } = this.#cursor
    this.#cursor.close()
    return failureFrame(seq, isFirst ? 'stream_gap' : 'slow_consumer')
  }
}
