import type { JournalBudget } from '../../../cluster/journal/journal.ts'
import type { RunEvent } from '../../../kernel/events.ts'

/** The limit for the events of one run, in bytes. A run with more cannot be replayed once the process has forgotten it. */
const MAX_RUN_BYTES = 1024 * 1024
/** The limit for all runs of a process: above it, runs of tenants with more than an equal share lose their events. */
export const MAX_CAPTURED_BYTES = 64 * 1024 * 1024

/** An event of a run, its number, and its time, in milliseconds after the start of the run. `data` is the data of its frame, if it is short. */
export type CapturedEvent = { seq: number; atMs: number; event: RunEvent; data?: string | undefined }

/** Longer data is not kept: it would be a second copy of the event's texts. */
const MAX_DATA_CHARS = 2 * 1024

/**
 * The events of one run, for its replay after its end. The deltas are left out, because the event after them has the whole text. The events share
 * their texts with the conversation. Short data is kept in rendered form, so that it need not be rendered again.
 */
export class CapturedEvents {
  readonly #room: JournalBudget
  #all: CapturedEvent[] | undefined = []
  #bytes = 0
  /** Bytes reserved for data that is kept together with the events. */
  #besideBytes = 0

  /** `room`: the memory budget, which the runs of a process share. */
  constructor(room: JournalBudget) {
    this.#room = room
  }

  /** `undefined` when the events were too long, or were dropped. */
  get all(): readonly CapturedEvent[] | undefined {
    return this.#all
  }

  /** The length of the events' frames. */
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

  /** Reserves memory for data that is kept as long as the events. */
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

/** Whether the event is an increment, which a replay does not need: a later event has the whole text. */
export const isDelta = (event: RunEvent): boolean =>
  DELTAS.has(event.type === 'subagent_event' ? event.event_type : event.type)
