import type { FrameStream, Frames } from '../port.ts'

const SILENT_MS = 2_000

/** Reads the frames of a stream, and reports its silences. */
export class FrameReader {
  readonly #stream: AsyncIterator<Frames>
  readonly #silentMs: number
  #pending: Promise<IteratorResult<Frames>> | undefined

  constructor(stream: FrameStream, silentMs = SILENT_MS) {
    this.#stream = stream[Symbol.asyncIterator]()
    this.#silentMs = silentMs
  }

  /** The next frames, `undefined` at the end. The wait for them goes on over a silence. */
  async next(): Promise<Frames | 'silence' | undefined> {
    this.#pending ??= this.#stream.next()
    const silence = Promise.withResolvers<'silence'>()
    const timer = setTimeout(() => silence.resolve('silence'), this.#silentMs)
    try {
      const news = await Promise.race([this.#pending, silence.promise])
      if (news === 'silence') return news
      this.#pending = undefined
      return news.done ? undefined : news.value
    } finally {
      clearTimeout(timer)
    }
  }

  /** Detaches from the stream. */
  async return(): Promise<void> {
    await this.#stream.return?.()
  }
}
