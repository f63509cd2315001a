import { isTerminal, type RunEvent } from '../../kernel/events.ts'
import { type BehindLimits, JournalCursor, type JournalSource } from './cursor.ts'
import { FrameBuffer, type KeptFrames } from './frame-buffer.ts'
import type { Frames } from './frame-stream.ts'
import { frameOf, renderData, renderFrame } from './frames.ts'
import { isLarge, LargeFrame } from './large-frame.ts'

/** Limits of what a journal keeps of one run (`shared/cluster/README.md` "Journal"). */
export type JournalLimits = BehindLimits & {
  maxEvents: number
  maxBytes: number
  /** Bytes that every journal may keep, even when its budget is exceeded. */
  floorBytes: number
}

export const JOURNAL_LIMITS: JournalLimits = {
  maxEvents: 4096,
  maxBytes: 2 * 1024 * 1024,
  floorBytes: 256 * 1024,
  maxBehindEvents: 1024,
  maxBehindBytes: 48 * 1024,
  maxUnconfirmedEvents: 3072,
  maxUnconfirmedBytes: 32 * 1024,
}

/** The budget of bytes that all journals share. */
export type JournalBudget = {
  /** Called when the journal holds more bytes, or with a negative number fewer. */
  add(bytes: number): void
  /** Whether the journal should keep no more than its floor. */
  isExceeded(): boolean
}

export type Appended = { bytes: number; data: string | undefined; isLast: boolean }

/**
 * Stores a run's events as numbered frames in a bounded buffer, which any number of readers read at their own pace.
 * The buffer is all that is between the engine and a reader; a reader is only a position in it.
 */
export class Journal implements JournalSource {
  readonly #budget: JournalBudget
  readonly limits: JournalLimits
  readonly #onReadersChanged: () => void
  readonly #buffer = new FrameBuffer()
  readonly #readers = new Set<JournalCursor>()
  #notice: { event: RunEvent; upTo: number } | undefined
  #isEnded = false
  #isAbandoned = false
  #wakeProducer: (() => void) | undefined

  /** `onReadersChanged` is called after a reader was added or removed. */
  constructor(budget: JournalBudget, limits: JournalLimits = JOURNAL_LIMITS, onReadersChanged: () => void = () => {}) {
    this.#budget = budget
    this.limits = limits
    this.#onReadersChanged = onReadersChanged
  }

  get lastSeq(): number {
    return this.#buffer.lastSeq
  }

  get newestSeq(): number {
    return this.#buffer.newestSeq
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  get readerCount(): number {
    return this.#readers.size
  }

  /**
   * Begins with the known events of the process that had the run before, from number `from` on. The next event has a higher number than
   * `reserved`. If a reader lacks events that are no longer known, it gets `notice` before the first event after them.
   */
  restore(
    events: readonly (readonly [seq: number, event: RunEvent])[],
    { from, reserved, notice }: { from: number; reserved: number; notice?: RunEvent },
  ): void {
    this.#buffer.startAt(from)
    for (const [seq, event] of events) {
      this.#skipTo(seq - 1)
      this.append(event)
    }
    if (notice) this.#notice = { event: notice, upTo: this.lastSeq }
    if (!this.#isEnded) this.#skipTo(reserved)
  }

  #skipTo(seq: number): void {
    const before = this.#buffer.bytes
    this.#buffer.skipTo(seq)
    this.#budget.add(this.#buffer.bytes - before)
  }

  /**
   * Appends an event's frame and returns its size in bytes, its data unless the event is large, and whether it is the last one. A terminal event ends the journal; an event after it
   * is a bug and throws.
   */
  append(event: RunEvent): Appended {
    if (this.#isEnded) throw new Error('an event follows the terminal event')
    const before = this.#buffer.bytes
    const seq = this.lastSeq + 1
    const data = isLarge(event) ? undefined : renderData(event)
    const size = this.#buffer.push(data === undefined ? new LargeFrame(seq, event) : frameOf(seq, event.type, data))
    this.#budget.add(this.#buffer.bytes - before)
    this.#isEnded = isTerminal(event)
    this.shrink()
    for (const reader of this.#readers) reader.onAppended(size)
    return { bytes: size, data, isLast: this.#isEnded }
  }

  /** `true` while a reader is so far behind that the producer should call `waitForDrain`. */
  get isBackpressured(): boolean {
    for (const reader of this.#readers) if (reader.isTooFarBehind) return true
    return false
  }

  /**
   * Resolves when no reader is too far behind any more (each has caught up or was closed), or when `signal` is aborted.
   * A journal has one producer, so only one call may be pending.
   */
  async waitForDrain(signal: AbortSignal): Promise<void> {
    if (!this.isBackpressured || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = () => resolve()
    this.#wakeProducer = wake
    signal.addEventListener('abort', wake)
    await promise
    signal.removeEventListener('abort', wake)
    this.#wakeProducer = undefined
  }

  /** Adds a reader that reads the frames after number `seq`. It counts as a reader until it is closed. */
  follow(seq: number): JournalCursor {
    const cursor = new JournalCursor(this, Math.min(seq, this.lastSeq))
    this.#readers.add(cursor)
    this.#onReadersChanged()
    return cursor
  }

  /** Discards the oldest frames above the limits that every reader has read. */
  shrink(): void {
    while (this.#isOverLimit() && !this.#isUnread(this.#buffer.firstSeq)) this.#dropOldest()
  }

  /** Discards all frames, to free memory for other runs. A reader that has not taken them all gets a gap. */
  drop(): void {
    this.#budget.add(-this.#buffer.bytes)
    this.#buffer.clear()
  }

  /** Tells every present and future reader that the frames it has not taken are no longer kept: the run continues in another process. */
  abandon(): void {
    this.#isAbandoned = true
    this.drop()
    for (const reader of this.#readers) reader.onAppended(0)
  }

  get isAbandoned(): boolean {
    return this.#isAbandoned
  }

  readAfter(seq: number): KeptFrames | undefined {
    if (this.#isAbandoned) return undefined
    return seq + 1 < this.#buffer.firstSeq ? undefined : this.#buffer.readAfter(seq)
  }

  noticeAfter(seq: number): Frames | undefined {
    if (!this.#notice || seq + 1 < this.#buffer.firstSeq) return undefined
    const { event, upTo } = this.#notice
    const next = this.#buffer.nextAfter(seq) ?? Infinity
    if (next === seq + 1 || next > upTo) return undefined
    return { text: renderFrame(seq + 1, event), lastSeq: seq + 1 }
  }

  bytesAfter(seq: number): number {
    return this.#buffer.bytesAfter(seq)
  }

  onReaderAdvanced(): void {
    if (this.#wakeProducer && !this.isBackpressured) this.#wakeProducer()
  }

  removeReader(cursor: JournalCursor): void {
    this.#readers.delete(cursor)
    this.onReaderAdvanced()
    this.#onReadersChanged()
  }

  #dropOldest(): void {
    const before = this.#buffer.bytes
    this.#buffer.shift()
    this.#budget.add(this.#buffer.bytes - before)
  }

  /**
   * Whether a reader has yet to read frame `seq`. Such a frame is kept above the limits; the number of these frames is small
   * because the producer waits for readers that are too far behind.
   */
  #isUnread(seq: number): boolean {
    for (const { readSeq } of this.#readers) if (readSeq < seq) return true
    return false
  }

  #isOverLimit(): boolean {
    const { maxEvents, maxBytes, floorBytes } = this.limits
    const { length, bytes } = this.#buffer
    if (length <= 1) return false
    return length > maxEvents || bytes > maxBytes || (bytes > floorBytes && this.#budget.isExceeded())
  }
}
