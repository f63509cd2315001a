import type { FrameCursor, Frames } from '../port.ts'

/** How far a reader may be behind before the producer waits. Below these limits its next frame is always kept. */
export type BehindLimits = {
  maxBehindEvents: number
  maxBehindBytes: number
  /** The same, counted from the last frame that a remote client is known to have read: frames in transit are included. */
  maxUnconfirmedEvents: number
  maxUnconfirmedBytes: number
}

/** The journal as its cursors see it. */
export type JournalSource = {
  readonly limits: BehindLimits
  readonly isEnded: boolean
  /** Nothing more is kept or will be: every reader has a gap. */
  readonly isAbandoned: boolean
  readonly lastSeq: number
  /** The frames after number `seq`, merged. `undefined` when the next one is no longer kept. */
  readAfter(seq: number): Frames | undefined
  bytesAfter(seq: number): number
  /** Called when a reader's position or read position has moved forward. */
  onReaderAdvanced(): void
  removeReader(cursor: JournalCursor): void
}

/**
 * One reader's position in a journal. It calls its listener at most once per event-loop turn, so frames that are appended in one
 * turn are read together.
 */
export class JournalCursor implements FrameCursor {
  readonly #journal: JournalSource
  #seq: number
  #behindBytes: number
  /** Read position of a remote client; `undefined` when a frame counts as read as soon as it is taken. */
  #confirmed: { seq: number; behindBytes: number } | undefined
  #isClosed = false
  #isNotifyScheduled = false
  #listener: (() => void) | undefined

  constructor(journal: JournalSource, seq: number) {
    this.#journal = journal
    this.#seq = seq
    this.#behindBytes = journal.bytesAfter(seq)
  }

  get seq(): number {
    return this.#seq
  }

  /** Number of the last frame that the client is known to have read. */
  get readSeq(): number {
    return this.#confirmed?.seq ?? this.#seq
  }

  get isTooFarBehind(): boolean {
    const { limits, lastSeq } = this.#journal
    if (this.#behindBytes > limits.maxBehindBytes || lastSeq - this.#seq > limits.maxBehindEvents) return true
    if (!this.#confirmed) return false
    const { seq, behindBytes } = this.#confirmed
    return behindBytes > limits.maxUnconfirmedBytes || lastSeq - seq > limits.maxUnconfirmedEvents
  }

  get state(): 'waiting' | 'ready' | 'ended' {
    if (this.#isClosed) return 'ended'
    if (this.#journal.isAbandoned || this.#seq < this.#journal.lastSeq) return 'ready'
    return this.#journal.isEnded ? 'ended' : 'waiting'
  }

  subscribe(listener: () => void): void {
    this.#listener = listener
  }

  take(): Frames | undefined {
    const frames = this.#journal.readAfter(this.#seq)
    if (!frames) return undefined
    this.#seq = frames.lastSeq
    this.#behindBytes -= Buffer.byteLength(frames.text)
    this.#journal.onReaderAdvanced()
    return frames
  }

  seek(seq: number): void {
    this.#seq = Math.min(seq, this.#journal.lastSeq)
    this.#behindBytes = this.#journal.bytesAfter(this.#seq)
    this.#scheduleNotify()
  }

  confirmRead(seq: number): void {
    const highest = Math.max(this.#confirmed?.seq ?? 0, Math.min(seq, this.#journal.lastSeq))
    this.#confirmed = { seq: highest, behindBytes: this.#journal.bytesAfter(highest) }
    this.#journal.onReaderAdvanced()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#journal.removeReader(this)
    this.#scheduleNotify()
  }

  /** Called by the journal when it has appended a frame of `bytes`. */
  onAppended(bytes: number): void {
    this.#behindBytes += bytes
    if (this.#confirmed) this.#confirmed.behindBytes += bytes
    this.#scheduleNotify()
  }

  #scheduleNotify(): void {
    if (this.#isNotifyScheduled) return
    this.#isNotifyScheduled = true
    setImmediate(this.#notify)
  }

  readonly #notify = (): void => {
    this.#isNotifyScheduled = false
    this.#listener?.()
  }
}
