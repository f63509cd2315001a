import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import type { FrameStream, Frames } from '../journal/frame-stream.ts'
import { failureFrame } from '../journal/frames.ts'

/** Follows the run behind frame `after` where it is now; `undefined` when it is nowhere else. Throws when it may be somewhere, and cannot be followed. */
export type FollowElsewhere = (after: number) => Promise<FrameStream | undefined>

/**
 * The stream of a run that may move: with its session to another worker, while it waits or with `DURABILITY=runs` when its worker dies (D32.7a), or
 * to another executor when its own dies (D34.2). When the stream breaks off, `followElsewhere` finds the run; the stream ends with its failure when that returns `undefined`,
 * and with one that has its client come back when that throws.
 */
export class MovableStream extends PullIterator<Frames> {
  readonly #followElsewhere: FollowElsewhere
  readonly #mayMoveBegun: boolean
  /** What was yielded last ends inside a large frame, of which another stream cannot send the rest. */
  #isInsideFrame = false
  #frames: FrameStream
  #source: AsyncIterator<Frames>
  #onLast: ((last: Frames) => void) | undefined

  /** `mayMoveBegun`: a run may move when its stream has begun. */
  constructor(frames: FrameStream, followElsewhere: FollowElsewhere, mayMoveBegun = false) {
    super()
    this.#mayMoveBegun = mayMoveBegun
    this.#frames = frames
    this.#source = frames[Symbol.asyncIterator]()
    this.#followElsewhere = followElsewhere
  }

  onLast(listener: (last: Frames) => void): void {
    this.#onLast = listener
    this.#listen()
  }

  protected override async pull(): Promise<Frames | undefined> {
    while (!this.isStopped) {
      const { done, value: next } = await this.#source.next()
      if (done) break
      const value = this.#endOf(next)
      if (!this.#isBrokenOff(value)) {
        this.#isInsideFrame = value.pieces !== undefined
        return value
      }
      const end = await this.#goOn(value)
      if (end) return end
    }
    return undefined
  }

  protected override async stop(): Promise<void> {
    await this.#source.return?.()
  }

  /** Returns the last frames of a stream that does not go on. */
  async #goOn(broken: Frames): Promise<Frames | undefined> {
    let end = broken
    try {
      const elsewhere = await this.#followElsewhere(broken.lastSeq)
      if (elsewhere) return await this.#continueWith(elsewhere)
    } catch {
      end = failureFrame(broken.lastSeq, 'relay_unavailable')
    }
    this.#onLast?.(end)
    return end
  }

  async #continueWith(frames: FrameStream): Promise<undefined> {
    await this.#source.return?.()
    this.#frames = frames
    this.#source = frames[Symbol.asyncIterator]()
    this.#listen()
    if (this.isStopped) await this.#source.return?.() // The reader left meanwhile.
  }

  #listen(): void {
    const onLast = this.#onLast
    if (onLast) this.#frames.onLast?.((last) => this.#isBrokenOff(last) || onLast(this.#endOf(last)))
  }

  /** The rest of a large frame comes from nowhere else: the client comes back for it, and the run may go on meanwhile. */
  #endOf(last: Frames): Frames {
    const isLost = last.failure === 'worker_lost' && this.#mayMoveBegun && this.#isInsideFrame
    return isLost ? failureFrame(last.lastSeq, 'relay_unavailable') : last
  }

  #isBrokenOff({ failure, lastSeq }: Frames): boolean {
    if (failure !== 'stream_gap' && failure !== 'worker_lost') return false
    return this.#mayMoveBegun ? !this.#isInsideFrame : lastSeq === 0
  }
}
