import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import type { FrameStream, Frames } from '../journal/frame-stream.ts'

/** Follows the run behind frame `after` where it is now; `undefined` when it is nowhere else. */
export type FollowElsewhere = (after: number) => Promise<FrameStream | undefined>

/**
 * The stream of a run that may move: with its session to another worker, while it waits or with `DURABILITY=runs` when its worker dies (D32.7a), or
 * to another executor when its own dies (D34.2). When the stream breaks off, `followElsewhere` finds the run; the stream ends with its failure when that returns `undefined`.
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
      const { done, value } = await this.#source.next()
      if (done) break
      if (!this.#isBrokenOff(value)) {
        this.#isInsideFrame = value.pieces !== undefined
        return value
      }
      const elsewhere = await this.#followElsewhere(value.lastSeq)
      if (!elsewhere) {
        this.#onLast?.(value)
        return value
      }
      await this.#continueWith(elsewhere)
    }
    return undefined
  }

  protected override async stop(): Promise<void> {
    await this.#source.return?.()
  }

  async #continueWith(frames: FrameStream): Promise<void> {
    await this.#source.return?.()
    this.#frames = frames
    this.#source = frames[Symbol.asyncIterator]()
    this.#listen()
    if (this.isStopped) await this.#source.return?.() // The reader left meanwhile.
  }

  #listen(): void {
    const onLast = this.#onLast
    if (onLast) this.#frames.onLast?.((last) => this.#isBrokenOff(last) || onLast(last))
  }

  #isBrokenOff({ failure, lastSeq }: Frames): boolean {
    if (failure !== 'stream_gap' && failure !== 'worker_lost') return false
    return this.#mayMoveBegun ? !this.#isInsideFrame : lastSeq === 0
  }
}
