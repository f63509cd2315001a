import { renderReaderFailure } from './frames.ts'
import type { Frames } from './port.ts'

/** What a reader needs of the journal it reads. */
export type JournalSource = {
  readonly isEnded: boolean
  hasAfter(seq: number): boolean
  /** `undefined` when the next frame is no longer kept. */
  readAfter(seq: number): Frames | undefined
  /** The reader has read on. */
  advanced(): void
  left(reader: JournalReader): void
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * One reader's place in a journal. Frames that arrive in one event-loop turn are read together, so that a busy stream costs
 * one write per turn and an idle one none (performance.md, point 4). A class, not a generator: thousands of these idle.
 */
export class JournalReader implements AsyncIterableIterator<Frames> {
  readonly #journal: JournalSource
  #seq: number
  #behindBytes: number
  #hasRead = false
  #isClosed = false
  #isWaking = false
  #wake: (() => void) | undefined

  constructor(journal: JournalSource, seq: number, behindBytes: number) {
    this.#journal = journal
    this.#seq = seq
    this.#behindBytes = behindBytes
  }

  /** Number of the last frame read. */
  get seq(): number {
    return this.#seq
  }

  get behindBytes(): number {
    return this.#behindBytes
  }

  added(bytes: number): void {
    this.#behindBytes += bytes
    if (!this.#wake || this.#isWaking) return
    this.#isWaking = true
    setImmediate(this.#turn)
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    while (!this.#isClosed && !this.#journal.hasAfter(this.#seq)) {
      if (this.#journal.isEnded) return this.return()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#isClosed ? END : { done: false, value: this.#read() }
  }

  return(): Promise<IteratorResult<Frames, undefined>> {
    this.#close()
    return Promise.resolve(END)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #read(): Frames {
    const frames = this.#journal.readAfter(this.#seq)
    if (!frames) {
      this.#close()
      const text = renderReaderFailure(this.#seq, this.#hasRead ? 'slow_consumer' : 'stream_gap')
      return { text, lastSeq: this.#seq }
    }
    this.#hasRead = true
    this.#seq = frames.lastSeq
    this.#behindBytes -= Buffer.byteLength(frames.text)
    this.#journal.advanced()
    return frames
  }

  readonly #turn = (): void => {
    this.#isWaking = false
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#turn()
    this.#journal.left(this)
  }
}
