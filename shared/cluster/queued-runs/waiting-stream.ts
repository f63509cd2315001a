import type { FrameStream, Frames } from '../journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../journal/frames.ts'

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * The stream of a run that is still queued. It is a class because `return` must end a wait that is under way.
 *
 * | State   | Event                            | Next state                                        |
 * |---------|----------------------------------|---------------------------------------------------|
 * | waiting | `begin`: the run has begun       | begun: yields the frames of the executor's stream |
 * | waiting | `fail`                           | failed: yields one terminal frame                 |
 * | any     | the reader has left, or the end  | closed                                            |
 */
export class WaitingStream implements AsyncIterableIterator<Frames> {
  readonly #onLeft: () => void
  #source: AsyncIterator<Frames> | undefined
  #failure: ReaderFailure | undefined
  #isClosed = false
  #wake: (() => void) | undefined

  /** `onLeft` is called when the reader leaves, or has reached the end. */
  constructor(onLeft: () => void) {
    this.#onLeft = onLeft
  }

  /** Continues with these frames. They are returned at once when the stream does not wait any more. */
  begin(frames: FrameStream): void {
    const source = frames[Symbol.asyncIterator]()
    if (this.#isClosed || this.#failure) {
      source.return?.().catch(() => {}) // Nobody can receive the error.
      return
    }
    this.#source = source
    this.#wake?.()
  }

  /** Ends the stream with a terminal frame. Does nothing when it has begun. */
  fail(code: ReaderFailure): void {
    this.#failure = code
    this.#wake?.()
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    while (!this.#source && !this.#failure && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    if (this.#isClosed) return END
    if (this.#source) return this.#source.next()
    const failure = this.#failure
    await this.return()
    return failure ? { done: false, value: failureFrame(0, failure) } : END
  }

  async return(): Promise<IteratorResult<Frames, undefined>> {
    if (this.#isClosed) return END
    this.#isClosed = true
    this.#wake?.()
    this.#onLeft()
    await this.#source?.return?.()
    return END
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
