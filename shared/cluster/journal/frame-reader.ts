import type { FrameStream, Frames } from './frame-stream.ts'

const SILENT_MS = 2_000

/** Reads the frames of a stream, each as a whole, and reports its silences. */
export class FrameReader {
  readonly #stream: AsyncIterator<Frames>
  readonly #silentMs: number
  #pending: Promise<IteratorResult<Frames>> | undefined
  /** The pieces of a large frame that have come. */
  #pieces: Buffer[] = []

  constructor(stream: FrameStream, silentMs = SILENT_MS) {
    this.#stream = stream[Symbol.asyncIterator]()
    this.#silentMs = silentMs
  }

  /** The next frames, `undefined` at the end. The wait for them goes on over a silence. */
  async next(): Promise<Frames | 'silence' | undefined> {
    for (;;) {
      const news = await this.#nextPiece()
      if (news === 'silence' || news === undefined || news.failure !== undefined) return news
      const { pieces, ...frames } = news
      if (pieces === undefined && this.#pieces.length === 0) return frames
      this.#pieces.push(Buffer.from(frames.text))
      if (pieces !== undefined) continue
      const text = Buffer.concat(this.#pieces)
      this.#pieces = []
      return { ...frames, text }
    }
  }

  /** Detaches from the stream. */
  async return(): Promise<void> {
    await this.#stream.return?.()
  }

  async #nextPiece(): Promise<Frames | 'silence' | undefined> {
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
}
