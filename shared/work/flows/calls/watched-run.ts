import { FrameReader } from '../../../cluster/journal/frame-reader.ts'
import type { FrameStream, Frames } from '../../../cluster/port.ts'
import { toAppError } from '../../../kernel/errors.ts'

export type WatchOptions = {
  /** Number of the last frame that the reader has. */
  after: number
  /**
   * Called while nothing comes, and when the stream has broken. Returns the terminal frame of an execution that has ended without
   * sending one; `undefined` while it goes on.
   */
  findEnd(lastSeq: number): Promise<string | undefined>
  /** The longest silence of the stream before `findEnd` is called; 2 s by default. */
  silentMs?: number
}

/** Failures after which the execution has ended or is lost; after the others only this reader is. */
const BREAKS: ReadonlySet<string> = new Set(['worker_lost', 'cancelled'])

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * The frames of an execution, with an end in every case: when its executor is lost or no executor takes it, the terminal frame is
 * made from the stored record. A class, because `return` must end a wait that is under way.
 */
export class WatchedRun implements AsyncIterableIterator<Frames> {
  readonly #reader: FrameReader
  readonly #options: WatchOptions
  #seq: number
  #isOver = false

  constructor(stream: FrameStream, options: WatchOptions) {
    this.#reader = new FrameReader(stream, options.silentMs)
    this.#options = options
    this.#seq = options.after
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    while (!this.#isOver) {
      const frames = await this.#reader.next()
      if (frames === 'silence') {
        const end = await this.#findEnd()
        if (end !== undefined) return this.#close(end)
      } else if (frames === undefined) {
        this.#isOver = true
      } else if (frames.failure !== undefined && BREAKS.has(frames.failure)) {
        return this.#close((await this.#findEnd()) ?? frames.text)
      } else {
        this.#seq = frames.lastSeq
        return { done: false, value: frames }
      }
    }
    return END
  }

  async return(): Promise<IteratorResult<Frames, undefined>> {
    this.#isOver = true
    await this.#reader.return()
    return END
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** A store that does not answer says nothing about the execution: it is asked again after the next silence. */
  async #findEnd(): Promise<string | undefined> {
    try {
      return await this.#options.findEnd(this.#seq)
    } catch (cause) {
      if (toAppError(cause).kind === 'unavailable') return undefined
      throw cause
    }
  }

  /** A terminal frame that was not sent by the execution itself repeats the last number (D4.2). */
  async #close(text: string | Uint8Array): Promise<IteratorResult<Frames, undefined>> {
    await this.return()
    return { done: false, value: { text, lastSeq: this.#seq } }
  }
}
