import type { FrameCursor, Frames } from '../port.ts'
import { renderReaderFailure } from './frames.ts'

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * A cursor as an iteration: ends with the run, or with a terminal frame when the next frame is gone. A class, not a generator:
 * thousands of these stand idle.
 */
export class CursorStream implements AsyncIterableIterator<Frames> {
  readonly #cursor: FrameCursor
  #hasRead = false
  #wake: (() => void) | undefined

  constructor(cursor: FrameCursor) {
    this.#cursor = cursor
    cursor.onNews = () => this.#wake?.()
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    while (this.#cursor.state === 'waiting') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    this.#wake = undefined
    if (this.#cursor.state === 'ended') return this.return()
    const frames = this.#cursor.take()
    const isFirst = !this.#hasRead
    this.#hasRead = true
    return { done: false, value: frames ?? this.#gap(isFirst) }
  }

  return(): Promise<IteratorResult<Frames, undefined>> {
    this.#cursor.close()
    return Promise.resolve(END)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #gap(isFirst: boolean): Frames {
    const { seq } = this.#cursor
    this.#cursor.close()
    return { text: renderReaderFailure(seq, isFirst ? 'stream_gap' : 'slow_consumer'), lastSeq: seq }
  }
}
