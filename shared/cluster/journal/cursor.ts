import type { KeptFrames } from './frame-buffer.ts'
import type { FrameCursor, Frames, Position } from './frame-stream.ts'
import { LargeFrame } from './large-frame.ts'

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
  /** Whether the journal keeps no frames any more, so that every reader has a gap. */
  readonly isAbandoned: boolean
  readonly lastSeq: number
  /** The number of the newest frame. Numbers above it, up to the last, were left out. */
  readonly newestSeq: number
  /** The frames after number `seq`, merged, or a large one. `undefined` when the next one is no longer kept. */
  readAfter(seq: number): KeptFrames | undefined
  /** The notice for a reader that has read up to number `seq`, when the events after it are no longer known. Its frame has the number `seq + 1`. */
  noticeAfter(seq: number): Frames | undefined
  bytesAfter(seq: number): number
  /** Called when a reader's position or read position has moved forward. */
  onReaderAdvanced(): void
  removeReader(cursor: JournalCursor): void
}

/** How many unread pieces of a large frame may be on their way to a remote client. */
const MAX_UNCONFIRMED_PIECES = 4

/**
 * One reader's position in a journal. It calls its listener at most once per event-loop turn, so frames that are appended in one
 * turn are read together.
 */
export class JournalCursor implements FrameCursor {
  readonly #journal: JournalSource
  #seq: number
  /** How many pieces of the next frame were taken, when it is large. */
  #pieces = 0
  /** The large frame that is being read. It is read to its end, even if the journal has dropped it. */
  #open: (KeptFrames & { content: LargeFrame }) | undefined
  /** The number of the notice that the reader has received. */
  #noticeSeq: number | undefined
  #behindBytes: number
  /** Read position of a remote client; `undefined` when a frame counts as read as soon as it is taken. */
  #confirmed: (Position & { behindBytes: number }) | undefined
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

  get pieces(): number {
    return this.#pieces
  }

  /** Number of the last frame that the client is known to have read. */
  get readSeq(): number {
    return this.#confirmed?.seq ?? this.#seq
  }

  get isTooFarBehind(): boolean {
    const { limits, lastSeq } = this.#journal
    if (this.#isPieceAwaited) return true
    if (this.#behindBytes > limits.maxBehindBytes || lastSeq - this.#seq > limits.maxBehindEvents) return true
    if (!this.#confirmed) return false
    const { seq, behindBytes } = this.#confirmed
    return behindBytes > limits.maxUnconfirmedBytes || lastSeq - seq > limits.maxUnconfirmedEvents
  }

  get state(): 'waiting' | 'ready' | 'ended' {
    if (this.#isClosed) return 'ended'
    if (this.#open) return this.#isPieceAwaited ? 'waiting' : 'ready'
    if (this.#journal.isAbandoned || this.#seq < this.#journal.newestSeq) return 'ready'
    return this.#journal.isEnded ? 'ended' : 'waiting'
  }

  subscribe(listener: () => void): void {
    this.#listener = listener
  }

  take(): Frames | undefined {
    const notice = this.#takeNotice()
    if (notice) return notice
    const kept = this.#open ?? this.#journal.readAfter(this.#seq)
    if (!kept) return undefined
    const { content, lastSeq } = kept
    if (content instanceof LargeFrame) return this.#takePiece({ ...kept, content })
    this.#advance(kept)
    return { text: content, lastSeq }
  }

  seek({ seq, pieces }: Position): void {
    this.#seq = Math.min(seq, this.#journal.lastSeq)
    this.#pieces = pieces
    this.#open = undefined
    if (this.#noticeSeq !== undefined && this.#seq < this.#noticeSeq) this.#noticeSeq = undefined
    this.#behindBytes = this.#journal.bytesAfter(this.#seq)
    this.#scheduleNotify()
  }

  confirmRead({ seq, pieces }: Position): void {
    const known = this.#confirmed ?? { seq: 0, pieces: 0 }
    const highest = Math.max(known.seq, Math.min(seq, this.#journal.lastSeq))
    const highestPieces = Math.max(known.seq === highest ? known.pieces : 0, seq === highest ? pieces : 0)
    this.#confirmed = { seq: highest, pieces: highestPieces, behindBytes: this.#journal.bytesAfter(highest) }
    if (this.#open) this.#scheduleNotify()
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

  /** Whether the client must read some pieces before the next one is taken. */
  get #isPieceAwaited(): boolean {
    if (!this.#open || !this.#confirmed) return false
    const { seq, pieces } = this.#confirmed
    return this.#pieces - (seq === this.#seq ? pieces : 0) >= MAX_UNCONFIRMED_PIECES
  }

  /** Returns the notice once for each reader, before the first event whose predecessors it lacks. */
  #takeNotice(): Frames | undefined {
    if (this.#noticeSeq !== undefined || this.#pieces > 0) return undefined
    const notice = this.#journal.noticeAfter(this.#seq)
    if (!notice) return undefined
    this.#noticeSeq = notice.lastSeq
    this.#advance({ lastSeq: notice.lastSeq, size: 0 })
    return notice
  }

  #takePiece(open: KeptFrames & { content: LargeFrame }): Frames {
    const text = open.content.piece(this.#pieces++)
    if (this.#pieces < open.content.pieceCount) {
      this.#open = open
      return { text, lastSeq: this.#seq, pieces: this.#pieces }
    }
    this.#open = undefined
    this.#pieces = 0
    this.#advance(open)
    return { text, lastSeq: this.#seq }
  }

  #advance({ lastSeq, size }: Pick<KeptFrames, 'lastSeq' | 'size'>): void {
    this.#seq = lastSeq
    this.#behindBytes -= size
    this.#journal.onReaderAdvanced()
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
