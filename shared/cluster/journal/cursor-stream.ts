import { eventLoop } from '../../kernel/loop-budget.ts'
import type { FrameCursor, Frames } from './frame-stream.ts'
import { failureFrame } from './frames.ts'

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * Iterates over the frames of a cursor. Ends with the run, or with a terminal error frame when the journal no longer holds the
 * next frame: `stream_gap` on the first read, `slow_consumer` later. It is a class because thousands of idle generators cost
 * more memory.
 */
export class CursorStream implements AsyncIterableIterator<Frames> {
  readonly #cursor: FrameCursor
  #hasRead = false
  /** The next piece of a large frame is to be read. */
  #isInsideFrame = false
  #wake: (() => void) | undefined

  constructor(cursor: FrameCursor) {
    this.#cursor = cursor
    cursor.subscribe(() => this.#wake?.())
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    while (this.#cursor.state === 'waiting') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    this.#wake = undefined
    if (this.#cursor.state === 'ended') return this.return()
    if (this.#isInsideFrame) await eventLoop.enter()
    const frames = this.#cursor.take()
    const isFirst = !this.#hasRead
    this.#hasRead = true
    this.#isInsideFrame = frames?.pieces !== undefined
    return { done: false, value: frames ?? this.#closeWithGap(isFirst) }
  }

  return(): Promise<IteratorResult<Frames, undefined>> {
    this.#cursor.close()
    return Promise.resolve(END)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #closeWithGap(isFirst: boolean): Frames {
    const { seq } = this.#cursor
    this.#cursor.close()
    return failureFrame(seq, isFirst ? 'stream_gap' : 'slow_consumer')
  }
}
