import { FrameReader } from '../../cluster/journal/frame-reader.ts'
import type { FrameStream, Frames } from '../../cluster/journal/frame-stream.ts'
import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import { hasKind } from '../../kernel/errors.ts'

/** Frames for a reader. `end`: they end the reader's stream, or only the stream that they came from. */
export type Read = { frames: Frames | undefined; end?: 'all' | 'source' | undefined }

export type WatchOptions = {
  /** Number of the last frame that the reader has. */
  after: number
  /**
   * Called while nothing comes, and when a stream has broken. Returns the last frames of an execution that has ended without sending
   * them, if the reader lacks any; `undefined` while it goes on.
   */
  findEnd(lastSeq: number): Promise<{ frames: Frames | undefined } | undefined>
  /** Follows the execution where it is by now. Without it a stream that has broken ends the watch. */
  follow?(after: number): Promise<FrameStream>
  /** By default the reader gets every frame. */
  read?(frames: Frames, lastSeq: number): Read
  /** The longest silence of a stream before `findEnd` is called; 2 s by default. */
  silentMs?: number
  /** The wait before the execution is followed again; 500 ms by default. */
  retryMs?: number
}

const RETRY_MS = 500

/** Failures after which the execution has ended there or is lost; after the others only this reader is. */
const BREAKS: ReadonlySet<string> = new Set(['worker_lost', 'cancelled'])

/**
 * The frames of a queued execution, with an end in every case: when its executor is lost or no executor takes it, the end is made from the
 * stored record. Reading begins with `stream` where one is given, and otherwise by looking for the executor.
 */
export const watch = (stream: FrameStream | undefined, options: WatchOptions): AsyncIterableIterator<Frames> =>
  new Watch(stream, options)

/**
 * | State     | Event                                            | Next state                      |
 * |-----------|--------------------------------------------------|---------------------------------|
 * | searching | an executor has the execution, or the queue      | following                       |
 * | following | the stream has broken, and can be followed again | searching                       |
 * | following | the stream has broken otherwise, or has ended    | closed                          |
 * | both      | the record says that the execution has ended     | closed, after its last frames   |
 * | any       | the reader has left                              | closed                          |
 */
class Watch extends PullIterator<Frames> {
  readonly #options: WatchOptions
  #source: FrameReader | undefined
  #seq: number
  #isClosed = false
  #wake: () => void = () => {}

  constructor(stream: FrameStream | undefined, options: WatchOptions) {
    super()
    this.#options = options
    this.#source = stream && new FrameReader(stream, options.silentMs)
    this.#seq = options.after
  }

  protected override async pull(): Promise<Frames | undefined> {
    while (!this.#isClosed) {
      const frames = this.#source ? await this.#read(this.#source) : await this.#search()
      if (frames) return frames
    }
    return undefined
  }

  protected override async stop(): Promise<void> {
    this.#wake()
    await this.#close()
  }

  async #search(): Promise<Frames | undefined> {
    const { follow, silentMs } = this.#options
    if (!follow) return this.#close()
    try {
      this.#source = new FrameReader(await follow(this.#seq), silentMs)
      if (this.#isClosed) await this.#leave()
      return undefined
    } catch (cause) {
      if (!hasKind(cause, 'not_found') && !hasKind(cause, 'unavailable')) throw cause
    }
    return (await this.#findEnd()) ?? this.#wait()
  }

  async #read(source: FrameReader): Promise<Frames | undefined> {
    const news = await source.next()
    if (news === 'silence') return this.#findEnd()
    if (news === undefined || (news.failure !== undefined && BREAKS.has(news.failure))) return this.#broken(news)
    const { frames, end }: Read = this.#options.read?.(news, this.#seq) ?? { frames: news }
    if (frames) this.#seq = frames.lastSeq
    if (end === 'all') await this.#close()
    if (end !== 'source') return frames
    await this.#leave()
    return frames ?? (await this.#findEnd()) ?? this.#wait()
  }

  /** `last` is the frame with which the stream broke off. A terminal frame that was not sent by the execution itself repeats the last number (D4.2). */
  async #broken(last: Frames | undefined): Promise<Frames | undefined> {
    await this.#leave()
    if (this.#isClosed) return undefined // The reader has left.
    const isOver = !last && !this.#options.follow // The execution has sent its end.
    const end = isOver ? undefined : await this.#findEnd()
    if (end || this.#isClosed) return end
    if (this.#options.follow) return this.#wait()
    await this.#close()
    return last && { text: last.text, lastSeq: this.#seq }
  }

  /** Closes when the execution has ended. A store that does not answer says nothing: it is asked again after the next silence. */
  async #findEnd(): Promise<Frames | undefined> {
    const end = await this.#options.findEnd(this.#seq).catch((cause: unknown) => {
      if (hasKind(cause, 'unavailable')) return undefined
      throw cause
    })
    if (end) await this.#close()
    return end?.frames
  }

  async #close(): Promise<undefined> {
    this.#isClosed = true
    await this.#leave()
  }

  async #leave(): Promise<void> {
    const source = this.#source
    this.#source = undefined
    await source?.return()
  }

  /** Resolves after a while, or when the reader leaves. */
  async #wait(): Promise<undefined> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = setTimeout(resolve, this.#options.retryMs ?? RETRY_MS)
    if (!this.#isClosed) await promise
    clearTimeout(timer)
  }
}
