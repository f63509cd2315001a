import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import type { FrameStream, Frames } from '../journal/frame-stream.ts'

/**
 * The stream of a run that may move to another worker while it waits, together with its session. When the stream breaks off before
 * its first frame, `followElsewhere` finds the run; the stream ends with its failure when that returns `undefined`.
 */
export class MovableStream extends PullIterator<Frames> {
  readonly #followElsewhere: () => Promise<FrameStream | undefined>
  #frames: FrameStream
  #source: AsyncIterator<Frames>
  #onLast: ((last: Frames) => void) | undefined

  constructor(frames: FrameStream, followElsewhere: () => Promise<FrameStream | undefined>) {
    super()
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
      if (!isBrokenOff(value)) return value
      const elsewhere = await this.#followElsewhere()
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
    if (onLast) this.#frames.onLast?.((last) => isBrokenOff(last) || onLast(last))
  }
}

const isBrokenOff = ({ failure, lastSeq }: Frames): boolean =>
  lastSeq === 0 && (failure === 'stream_gap' || failure === 'worker_lost')
