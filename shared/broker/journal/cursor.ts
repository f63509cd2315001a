import type { FrameCursor, Frames } from '../port.ts'

/** How far behind a reader may be before the producer waits: so a reader that reads never falls off the ring's end. */
export type BehindLimits = {
  maxBehindEvents: number
  maxBehindBytes: number
  /** The same for what was sent on and not confirmed: what is under way is within it. */
  maxUnconfirmedEvents: number
  maxUnconfirmedBytes: number
}

/** What a cursor needs of the journal it stands in. */
export type JournalSource = {
  readonly limits: BehindLimits
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
  /** What the reader is known to have, where that is not what was taken. */
  #confirmed: { seq: number; behindBytes: number } | undefined
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

  /** Number of the last frame that the reader is known to have. */
  get readSeq(): number {
    return this.#confirmed?.seq ?? this.#seq
  }

  get isWaitedFor(): boolean {
    const { limits, lastSeq } = this.#journal
    if (this.#behindBytes > limits.maxBehindBytes || lastSeq - this.#seq > limits.maxBehindEvents) return true
    if (!this.#confirmed) return false
    const { seq, behindBytes } = this.#confirmed
    return behindBytes > limits.maxUnconfirmedBytes || lastSeq - seq > limits.maxUnconfirmedEvents
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

  confirm(seq: number): void {
    const highest = Math.max(this.#confirmed?.seq ?? 0, Math.min(seq, this.#journal.lastSeq))
    this.#confirmed = { seq: highest, behindBytes: this.#journal.bytesAfter(highest) }
    this.#journal.advanced()
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
    if (this.#confirmed) this.#confirmed.behindBytes += bytes
    if (this.#isTelling) return
    this.#isTelling = true
    setImmediate(this.#tell)
  }

  readonly #tell = (): void => {
    this.#isTelling = false
    this.onNews()
  }
}
