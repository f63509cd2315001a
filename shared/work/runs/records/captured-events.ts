import type { JournalBudget } from '../../../cluster/journal/journal.ts'
import type { RunEvent } from '../../../kernel/events.ts'

/** Bytes of one run's events that are kept. A run with more is not replayed after its time. */
const MAX_RUN_BYTES = 1024 * 1024
/** The limit for all runs of a process: above it, runs of tenants with more than an equal share lose their events. */
export const MAX_CAPTURED_BYTES = 64 * 1024 * 1024

/** An event of a run, its number, and when it came, in milliseconds after the start of the run. `data` are those of its frame, if they are short. */
export type CapturedEvent = { seq: number; atMs: number; event: RunEvent; data?: string | undefined }

/** Data that are longer are not kept: they would be a second copy of the event's texts. */
const MAX_DATA_CHARS = 2 * 1024

/**
 * The events of one run, for its replay after its end. The deltas are left out, since the event that follows them has the whole text. It holds the
 * events themselves, which share their texts with the conversation, and short data as they are, so that they need not be rendered again.
 */
export class CapturedEvents {
  readonly #room: JournalBudget
  #all: CapturedEvent[] | undefined = []
  #bytes = 0
  /** Taken for what is kept beside them. */
  #besideBytes = 0

  /** `room` is shared by the runs of a process. */
  constructor(room: JournalBudget) {
    this.#room = room
  }

  /** `undefined` when they were too long, or are dropped. */
  get all(): readonly CapturedEvent[] | undefined {
    return this.#all
  }

  /** The length of their frames. */
  get bytes(): number {
    return this.#bytes
  }

  /** `bytes` is the length of its frame. */
  add(captured: CapturedEvent, bytes: number): void {
    if (!this.#all) return
    this.#bytes += bytes
    this.#room.add(bytes)
    if (this.#bytes > MAX_RUN_BYTES || this.#room.isExceeded()) return this.drop()
    if (captured.data !== undefined && captured.data.length > MAX_DATA_CHARS) captured.data = undefined
    this.#all.push(captured)
  }

  /** Takes room for something that is kept as long as they are. */
  reserve(bytes: number): void {
    this.#besideBytes += bytes
    this.#room.add(bytes)
    if (this.#room.isExceeded()) this.drop()
  }

  drop(): void {
    this.#room.add(-this.#bytes - this.#besideBytes)
    this.#bytes = 0
    this.#besideBytes = 0
    this.#all = undefined
  }
}

const DELTAS: ReadonlySet<string> = new Set(['text_delta', 'thinking_delta', 'tool_progress'])

/** Whether the event is an increment, which a replay does not need: a later event has the whole. */
export const isDelta = (event: RunEvent): boolean =>
  DELTAS.has(event.type === 'subagent_event' ? event.event_type : event.type)
