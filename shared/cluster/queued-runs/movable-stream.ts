import type { FrameStream, Frames } from '../journal/frame-stream.ts'

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * The stream of a run that may move to another worker while it waits, together with its session. When the stream breaks off before
 * its first frame, `followElsewhere` finds the run; the stream ends with its failure when that returns `undefined`.
 */
export class MovableStream implements AsyncIterableIterator<Frames> {
  readonly #followElsewhere: () => Promise<FrameStream | undefined>
  #frames: FrameStream
  #source: AsyncIterator<Frames>
  #isClosed = false
  #onLast: ((last: Frames) => void) | undefined

  constructor(frames: FrameStream, followElsewhere: () => Promise<FrameStream | undefined>) {
    this.#frames = frames
    this.#source = frames[Symbol.asyncIterator]()
    this.#followElsewhere = followElsewhere
  }

  onLast(listener: (last: Frames) => void): void {
    this.#onLast = listener
    this.#listen()
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    while (!this.#isClosed) {
      const result = await this.#source.next()
      if (result.done) break
      if (!isBrokenOff(result.value)) return result
      const elsewhere = await this.#followElsewhere()
      if (!elsewhere) {
        this.#onLast?.(result.value)
        return result
      }
      await this.#continueWith(elsewhere)
    }
    return END
  }

  async return(): Promise<IteratorResult<Frames, undefined>> {
    this.#isClosed = true
    await this.#source.return?.()
    return END
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async #continueWith(frames: FrameStream): Promise<void> {
    await this.#source.return?.()
    this.#frames = frames
    this.#source = frames[Symbol.asyncIterator]()
    this.#listen()
    if (this.#isClosed) await this.#source.return?.() // The reader left meanwhile.
  }

  #listen(): void {
    const onLast = this.#onLast
    if (onLast) this.#frames.onLast?.((last) => isBrokenOff(last) || onLast(last))
  }
}

const isBrokenOff = ({ failure, lastSeq }: Frames): boolean =>
  lastSeq === 0 && (failure === 'stream_gap' || failure === 'worker_lost')
