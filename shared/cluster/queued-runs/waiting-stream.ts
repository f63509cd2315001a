import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import type { FrameStream, Frames } from '../journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../journal/frames.ts'

/**
 * The stream of a run that is still queued.
 *
 * | State   | Event                            | Next state                                        |
 * |---------|----------------------------------|---------------------------------------------------|
 * | waiting | `begin`: the run has begun       | begun: yields the frames of the executor's stream |
 * | waiting | `fail`                           | failed: yields one terminal frame                 |
 * | any     | the reader has left, or the end  | closed                                            |
 */
export class WaitingStream extends PullIterator<Frames> {
  readonly #onLeft: () => void
  #source: AsyncIterator<Frames, undefined> | undefined
  #failure: ReaderFailure | undefined
  #wake: (() => void) | undefined

  /** `onLeft` is called when the reader leaves, or has reached the end. */
  constructor(onLeft: () => void) {
    super()
    this.#onLeft = onLeft
  }

  /** Continues with these frames. They are returned at once when the stream does not wait any more. */
  begin(frames: FrameStream): void {
    const source = frames[Symbol.asyncIterator]()
    if (this.isStopped || this.#failure) {
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

  protected override async pull(): Promise<Frames | undefined> {
    while (!this.#source && !this.#failure && !this.isStopped) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    if (this.isStopped) return undefined
    if (this.#source) return (await this.#source.next()).value
    const failure = this.#failure
    await this.return()
    return failure && failureFrame(0, failure)
  }

  protected override async stop(): Promise<void> {
    this.#wake?.()
    this.#onLeft()
    await this.#source?.return?.()
  }
}
