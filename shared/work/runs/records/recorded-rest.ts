import type { FrameStream, Frames } from '../../../cluster/journal/frame-stream.ts'
import { PullIterator } from '../../../kernel/async/pull-iterator.ts'

/** Returns the frames after number `seq` of a run that has ended, as far as they are recorded. */
export type ReadRest = (seq: number) => Promise<FrameStream | undefined>

/**
 * The frames of a run that a process knows. Where that has dropped the next ones, because the run has ended and others needed the memory, those
 * of its record follow (D20.3). The rest of a large frame that has begun comes from nowhere else.
 */
export class RecordedRest extends PullIterator<Frames> {
  readonly #stream: FrameStream
  readonly #readRest: ReadRest
  #source: AsyncIterator<Frames>
  #isInsideFrame = false

  constructor(stream: FrameStream, readRest: ReadRest) {
    super()
    this.#stream = stream
    this.#source = stream[Symbol.asyncIterator]()
    this.#readRest = readRest
  }

  onLast(listener: (last: Frames) => void): void {
    this.#stream.onLast?.(listener)
  }

  protected override async pull(): Promise<Frames | undefined> {
    const { done, value } = await this.#source.next()
    if (done === true) return undefined
    if (value.failure === 'stream_gap' && !this.#isInsideFrame) return this.#continue(value)
    this.#isInsideFrame = value.pieces !== undefined
    return value
  }

  protected override async stop(): Promise<void> {
    await this.#source.return?.()
  }

  async #continue(gap: Frames): Promise<Frames | undefined> {
    const rest = await this.#readRest(gap.lastSeq)
    if (!rest) return gap
    await this.#source.return?.()
    this.#source = rest[Symbol.asyncIterator]()
    const { done, value } = await this.#source.next()
    return done === true ? undefined : value
  }
}
