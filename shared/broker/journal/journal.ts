import { type AgentEvent, isTerminal } from '../../events.ts'
import type { Frames } from '../port.ts'
import { type BehindLimits, JournalCursor, type JournalSource } from './cursor.ts'
import { renderFrame } from './frames.ts'
import { FrameRing } from './ring.ts'

/** Bounds of what is kept of one run (design §4.1). */
export type JournalLimits = BehindLimits & {
  maxEvents: number
  maxBytes: number
  /** What one journal may always keep, however full the process is. */
  floorBytes: number
}

export const JOURNAL_LIMITS: JournalLimits = {
  maxEvents: 4096,
  maxBytes: 2 * 1024 * 1024,
  floorBytes: 256 * 1024,
  maxBehindEvents: 1024,
  maxBehindBytes: 128 * 1024,
  maxUnconfirmedEvents: 3072,
  maxUnconfirmedBytes: 192 * 1024,
}

/** Bytes that all journals of a process hold together, and how many they should. */
export type JournalBudget = { bytes: number; readonly maxBytes: number }

/**
 * A run's events as numbered frames in a bounded ring, from which any number of readers read at their own pace.
 * The ring is the only buffer between the engine and a client: a reader is nothing but a place in it.
 */
export class Journal implements JournalSource {
  readonly #budget: JournalBudget
  readonly limits: JournalLimits
  readonly #ring = new FrameRing()
  readonly #readers = new Set<JournalCursor>()
  #isEnded = false
  #wakeProducer: (() => void) | undefined
  /** Told each time a reader comes or goes. */
  onReaders: () => void = () => {}

  constructor(budget: JournalBudget, limits: JournalLimits = JOURNAL_LIMITS) {
    this.#budget = budget
    this.limits = limits
  }

  get lastSeq(): number {
    return this.#ring.lastSeq
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  get readerCount(): number {
    return this.#readers.size
  }

  /** Appends an event's frame. A terminal event closes the journal: appending after it is a bug and throws. */
  append(event: AgentEvent): void {
    if (this.#isEnded) throw new Error('nothing follows a terminal event')
    const before = this.#ring.bytes
    const size = this.#ring.push(renderFrame(this.lastSeq + 1, event))
    this.#budget.bytes += this.#ring.bytes - before
    this.#isEnded = isTerminal(event)
    while (this.#isOver() && !this.#isWanted(this.#ring.firstSeq)) this.#dropOldest()
    for (const reader of this.#readers) reader.added(size)
  }

  /** Is a reader so far behind that the producer should wait for `room`? */
  get isBackpressured(): boolean {
    for (const reader of this.#readers) if (reader.isWaitedFor) return true
    return false
  }

  /** For the one producer: resolves when no reader is far behind any more (each caught up or left), or `signal` is aborted. */
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

  /** A place to read on from after frame `seq`. It counts as a reader from this call on, until it is closed. */
  follow(seq: number): JournalCursor {
    const cursor = new JournalCursor(this, Math.min(seq, this.lastSeq))
    this.#readers.add(cursor)
    this.onReaders()
    return cursor
  }

  /** Gives up all frames so that other runs' may be kept; who follows from now on finds a gap. */
  drop(): void {
    this.#budget.bytes -= this.#ring.bytes
    this.#ring.clear()
  }

  readAfter(seq: number): Frames | undefined {
    return seq + 1 < this.#ring.firstSeq ? undefined : this.#ring.readAfter(seq)
  }

  bytesAfter(seq: number): number {
    return this.#ring.bytesAfter(seq)
  }

  advanced(): void {
    if (this.#wakeProducer && !this.isBackpressured) this.#wakeProducer()
  }

  left(cursor: JournalCursor): void {
    this.#readers.delete(cursor)
    this.advanced()
    this.onReaders()
  }

  #dropOldest(): void {
    const before = this.#ring.bytes
    this.#ring.shift()
    this.#budget.bytes += this.#ring.bytes - before
  }

  /** A reader is yet to get it. The producer waits for those that are behind, so there are never many such frames, however large. */
  #isWanted(seq: number): boolean {
    for (const { readSeq } of this.#readers) if (readSeq < seq) return true
    return false
  }

  #isOver(): boolean {
    const { maxEvents, maxBytes, floorBytes } = this.limits
    const { length, bytes } = this.#ring
    if (length <= 1) return false
    return length > maxEvents || bytes > maxBytes || (this.#budget.bytes > this.#budget.maxBytes && bytes > floorBytes)
  }
}
