import type { FrameCursor, Frames } from './port.ts'

/** What a cursor needs of the journal it stands in. */
export type JournalSource = {
  readonly isEnded: boolean
  readonly lastSeq: number
  /** The frames after number `seq`, merged; `undefined` when the next one is no longer kept. */
  readAfter(seq: number): Frames | undefined
  bytesAfter(seq: number): number
  /** The cursor has moved on. */
  advanced(): void
  left(cursor: JournalCursor): void
}

/**
 * One reader's place in a journal. It tells of news once per event-loop turn, so that what arrives in one turn is read
 * together (performance.md, point 4).
 */
export class JournalCursor implements FrameCursor {
  readonly #journal: JournalSource
  #seq: number
  #behindBytes: number
  #isClosed = false
  #isTelling = false
  onNews: () => void = () => {}

  constructor(journal: JournalSource, seq: number) {
    this.#journal = journal
    this.#seq = seq
    this.#behindBytes = journal.bytesAfter(seq)
  }

  get seq(): number {
    return this.#seq
  }

  get behindBytes(): number {
    return this.#behindBytes
  }

  get state(): 'waiting' | 'ready' | 'ended' {
    if (this.#isClosed) return 'ended'
    if (this.#seq < this.#journal.lastSeq) return 'ready'
    return this.#journal.isEnded ? 'ended' : 'waiting'
  }

  take(): Frames | undefined {
    const frames = this.#journal.readAfter(this.#seq)
    if (!frames) return undefined
    this.#seq = frames.lastSeq
    this.#behindBytes -= Buffer.byteLength(frames.text)
    this.#journal.advanced()
    return frames
  }

  seek(seq: number): void {
    this.#seq = Math.min(seq, this.#journal.lastSeq)
    this.#behindBytes = this.#journal.bytesAfter(this.#seq)
    this.added(0)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#journal.left(this)
    this.added(0)
  }

  /** Called by the journal when it has grown. */
  added(bytes: number): void {
    this.#behindBytes += bytes
    if (this.#isTelling) return
    this.#isTelling = true
    setImmediate(this.#tell)
  }

  readonly #tell = (): void => {
    this.#isTelling = false
    this.onNews()
  }
}
