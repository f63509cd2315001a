import { within } from '../../kernel/async/deadline.ts'
import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import type { FrameStream, Frames } from '../journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../journal/frames.ts'

/** The place where a stream of the run has ended, and the reader of it. */
export type BrokenOff = {
  /** The failure with which it broke off; `undefined`: it has ended without one, or there was none yet. */
  failure: Frames | undefined
  /** Number of the last frame that the reader has. */
  after: number
  /** The reader has a part of a large frame, of which another stream cannot send the rest. */
  isInsideFrame: boolean
  /** The stream has sent something. */
  hasNews: boolean
  /** Aborted when the reader leaves. */
  left: AbortSignal
}

/** The stream with which the run continues, or the last frames for the reader. */
export type Elsewhere = { stream: FrameStream } | { end: Frames | undefined }

/** Frames for the reader. `end`: they end the run, or only the stream that they came from. */
export type Read = { frames: Frames | undefined; end?: 'run' | 'stream' | undefined }

export type Following = {
  /** Whether the run may continue elsewhere after its stream has ended with this failure, or without one. */
  mayGoOn(failure: Frames | undefined): boolean
  followElsewhere(broken: BrokenOff): Promise<Elsewhere>
  /** Number of the last frame that the reader has. Left out: the one that a stream names when it breaks off. */
  after?: number
  /**
   * Called whenever nothing has come for this long; returns the last frames of a run that has ended without sending
   * them. If set, the pieces of a large frame are joined.
   */
  silence?: { ms: number; findEnd(after: number): Promise<{ end: Frames | undefined } | undefined> }
  /** By default the reader gets every frame. */
  read?(frames: Frames, after: number): Read
  /** Called when the reader leaves, or has reached the end. */
  onLeft?(): void
}

type Mode = 'waiting' | 'at' | 'moving' | 'ended'

/**
 * The stream of a run through all the places where it is: the queue, a process, the next one when it moves with its session or its process dies
 * (D32.7a, D34.2), and its record.
 *
 * | Mode    | Event                                                         | Next mode                    |
 * |---------|---------------------------------------------------------------|------------------------------|
 * | waiting | `begin`: a process has the run, or it has ended in the queue  | at                           |
 * | at      | the stream ends, and the run may go on elsewhere              | moving                       |
 * | at      | the stream ends otherwise                                     | ended                        |
 * | at      | nothing comes, and the run has ended                          | ended, after its last frames |
 * | moving  | the run is found elsewhere                                    | at, behind its last frame    |
 * | moving  | it is nowhere else                                            | ended, after its last frames |
 * | any     | the reader leaves                                             | ended                        |
 */
export class FollowedRun extends PullIterator<Frames> {
  readonly #following: Following
  #mode: Mode
  #stream: FrameStream | undefined
  #source: AsyncIterator<Frames> | undefined
  /** The pending next value of the source, kept during silences. */
  #pending: Promise<IteratorResult<Frames>> | undefined
  #seq: number | undefined
  #isInsideFrame = false
  #hasNews = true
  #failure: Frames | undefined
  /** The last frames for the reader. */
  #end: Frames | undefined
  #left: AbortController | undefined
  #onLast: ((last: Frames) => void) | undefined
  #wake: (() => void) | undefined

  /** Without a stream the run is waiting for `begin`, or moving. */
  constructor(stream: FrameStream | 'waiting' | 'moving', following: Following) {
    super()
    this.#following = following
    this.#seq = following.after
    this.#mode = stream === 'moving' ? 'moving' : 'waiting'
    if (typeof stream !== 'string') this.begin(stream)
  }

  /** Continues with this stream, or closes it at once if the reader no longer waits. */
  begin(stream: FrameStream): void {
    const source = stream[Symbol.asyncIterator]()
    if (this.#mode !== 'waiting' && this.#mode !== 'moving') {
      source.return?.().catch(() => {}) // Nobody can receive the error.
      return
    }
    this.#enter('at', 'waiting', 'moving')
    this.#hasNews = false
    this.#stream = stream
    this.#source = source
    this.#listen()
    this.#wake?.()
  }

  onLast(listener: (last: Frames) => void): void {
    this.#onLast = listener
    this.#listen()
  }

  protected override async pull(): Promise<Frames | undefined> {
    const { silence } = this.#following
    while (this.#mode !== 'ended') {
      if (this.#mode === 'waiting') await this.#begun()
      else if (this.#mode === 'moving') await this.#goOn()
      else {
        const news = silence ? await this.#nextWhole(silence) : (await this.#source?.next())?.value
        const frames = this.#taken(news)
        if (frames) return frames
      }
    }
    const end = this.#end
    this.#end = undefined
    if (end) this.#onLast?.(end)
    return end
  }

  protected override async stop(): Promise<void> {
    this.#mode = 'ended'
    this.#end = undefined
    this.#wake?.()
    this.#left?.abort()
    this.#following.onLeft?.()
    await this.#source?.return?.()
  }

  #enter(next: Mode, ...from: readonly Mode[]): undefined {
    if (!from.includes(this.#mode)) throw new Error(`a followed run cannot go from ${this.#mode} to ${next}`)
    this.#mode = next
  }

  #begun(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** Returns the frames for the reader, or handles the end of the stream. */
  #taken(news: Frames | undefined): Frames | undefined {
    const { read, mayGoOn } = this.#following
    if (this.#mode === 'ended') return undefined // The reader has left, or the record has shown the end.
    if ((!news || news.failure) && mayGoOn(news)) return this.#breakOff(news)
    if (!news) return this.#enter('ended', 'at')
    const { frames, end }: Read = read?.(news, this.#seq ?? 0) ?? { frames: news }
    if (frames) this.#note(frames)
    if (end === 'run') this.#enter('ended', 'at')
    if (end === 'stream') this.#breakOff(undefined)
    return frames
  }

  /** The next frames, those of a large event as one; `undefined` at the end. The wait for them continues after a silence. */
  async #nextWhole({ ms, findEnd }: NonNullable<Following['silence']>): Promise<Frames | undefined> {
    const pieces: Buffer[] = []
    for (;;) {
      this.#pending ??= this.#source?.next()
      const next = this.#pending && (await within(ms, this.#pending))
      if (!next) {
        this.#endIf(await findEnd(this.#seq ?? 0))
        if (this.#mode === 'ended') return undefined
        continue
      }
      this.#pending = undefined
      const news = next.value
      if (!news || news.failure || (news.pieces === undefined && pieces.length === 0)) return news
      pieces.push(Buffer.from(news.text))
      if (news.pieces === undefined) return { lastSeq: news.lastSeq, text: Buffer.concat(pieces) }
    }
  }

  #note(frames: Frames): void {
    if (this.#seq !== undefined) this.#seq = frames.lastSeq
    this.#isInsideFrame = frames.pieces !== undefined
    this.#hasNews = true
    if (frames.failure) this.#onLast?.(frames)
  }

  #breakOff(failure: Frames | undefined): undefined {
    this.#enter('moving', 'at')
    this.#failure = failure
  }

  async #goOn(): Promise<void> {
    this.#left ??= new AbortController()
    const elsewhere = await this.#following.followElsewhere({
      failure: this.#failure,
      after: this.#seq ?? this.#failure?.lastSeq ?? 0,
      isInsideFrame: this.#isInsideFrame,
      hasNews: this.#hasNews,
      left: this.#left.signal,
    })
    if ('end' in elsewhere) return this.#endIf(elsewhere)
    if (this.#mode === 'moving') await this.#source?.return?.()
    this.begin(elsewhere.stream)
  }

  #endIf(found: { end: Frames | undefined } | undefined): undefined {
    if (!found || this.#mode === 'ended') return
    this.#enter('ended', 'at', 'moving')
    this.#end = found.end
  }

  /** A failed stream is not the last one, unless its failure is passed on. */
  #listen(): void {
    const onLast = this.#onLast
    if (onLast) this.#stream?.onLast?.((last) => last.failure || onLast(last))
  }
}

/** The stream of a run that ends behind frame `after` with a failure. */
export async function* endedBy(code: ReaderFailure, after: number): FrameStream {
  yield failureFrame(after, code)
}
