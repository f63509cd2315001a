import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import type { FrameStream, Frames } from '../journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../journal/frames.ts'

/** Follows the run behind frame `after` where it is now; `undefined` when it is nowhere else. Throws when it may be somewhere, and cannot be followed. */
export type FollowElsewhere = (after: number) => Promise<FrameStream | undefined>

export type Following = {
  followElsewhere: FollowElsewhere
  /** The run may move when its stream has begun. */
  mayMoveBegun?: boolean
  /** Called when the reader leaves, or has reached the end. */
  onLeft?(): void
}

type Mode = 'waiting' | 'at' | 'moving' | 'ended'

/**
 * The stream of a run through all the places where it is: the queue, a worker or an executor, and the next one when it moves with its session or its
 * process dies (D32.7a, D34.2).
 *
 * | Mode    | Event                                                              | Next mode                        |
 * |---------|--------------------------------------------------------------------|----------------------------------|
 * | waiting | `begin`: a process has the run, or it has ended in the queue       | at                               |
 * | at      | the stream breaks off where another process may go on with the run | moving                           |
 * | at      | the stream ends                                                    | ended                            |
 * | moving  | the run is found elsewhere                                         | at, behind its last frame        |
 * | moving  | it is nowhere else                                                 | ended, after the failure         |
 * | moving  | it cannot be followed in time                                      | ended, after `relay_unavailable` |
 * | any     | the reader leaves                                                  | ended                            |
 */
export class FollowedRun extends PullIterator<Frames> {
  readonly #following: Following
  #mode: Mode = 'waiting'
  #frames: FrameStream | undefined
  #source: AsyncIterator<Frames> | undefined
  /** What was yielded last ends inside a large frame, of which another stream cannot send the rest. */
  #isInsideFrame = false
  /** The end of a run that is not found elsewhere. */
  #end: Frames | undefined
  #onLast: ((last: Frames) => void) | undefined
  #wake: (() => void) | undefined

  /** Without `frames` the run waits. */
  constructor(frames: FrameStream | undefined, following: Following) {
    super()
    this.#following = following
    if (frames) this.begin(frames)
  }

  /** Goes on with these frames. They are returned at once when it waits for none. */
  begin(frames: FrameStream): void {
    const source = frames[Symbol.asyncIterator]()
    if (this.#mode !== 'waiting' && this.#mode !== 'moving') {
      source.return?.().catch(() => {}) // Nobody can receive the error.
      return
    }
    this.#mode = 'at'
    this.#frames = frames
    this.#source = source
    this.#listen()
    this.#wake?.()
  }

  onLast(listener: (last: Frames) => void): void {
    this.#onLast = listener
    this.#listen()
  }

  protected override async pull(): Promise<Frames | undefined> {
    while (this.#mode !== 'ended') {
      if (!this.#source) {
        await this.#begun()
        continue
      }
      const { done, value } = await this.#source.next()
      if (done) return undefined
      const frames = this.#endOf(value)
      if (!this.#isBrokenOff(frames)) {
        this.#isInsideFrame = frames.pieces !== undefined
        return frames
      }
      await this.#move(frames)
    }
    const end = this.#end
    this.#end = undefined
    return end
  }

  protected override async stop(): Promise<void> {
    this.#mode = 'ended'
    this.#wake?.()
    this.#following.onLeft?.()
    await this.#source?.return?.()
  }

  #begun(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  async #move(broken: Frames): Promise<void> {
    if (this.#mode !== 'at') return // The reader has left.
    this.#mode = 'moving'
    const elsewhere = await this.#following.followElsewhere(broken.lastSeq).catch(() => 'away' as const)
    if (elsewhere === 'away') return this.#endWith(failureFrame(broken.lastSeq, 'relay_unavailable'))
    if (!elsewhere) return this.#endWith(broken)
    if (!this.isStopped) await this.#source?.return?.()
    this.begin(elsewhere)
  }

  #endWith(end: Frames): void {
    if (this.#mode !== 'moving') return // The reader has left.
    this.#mode = 'ended'
    this.#end = end
    this.#onLast?.(end)
  }

  #listen(): void {
    const onLast = this.#onLast
    if (onLast) this.#frames?.onLast?.((last) => this.#isBrokenOff(last) || onLast(this.#endOf(last)))
  }

  /** The rest of a large frame comes from nowhere else: the client comes back for it, and the run may go on meanwhile. */
  #endOf(last: Frames): Frames {
    const isLost = last.failure === 'worker_lost' && this.#following.mayMoveBegun && this.#isInsideFrame
    return isLost ? failureFrame(last.lastSeq, 'relay_unavailable') : last
  }

  #isBrokenOff({ failure, lastSeq }: Frames): boolean {
    if (failure !== 'stream_gap' && failure !== 'worker_lost') return false
    return this.#following.mayMoveBegun ? !this.#isInsideFrame : lastSeq === 0
  }
}

/** The stream of a run that has ended behind frame `after` without another frame of its own. */
export async function* endedBy(code: ReaderFailure, after: number): FrameStream {
  yield failureFrame(after, code)
}
