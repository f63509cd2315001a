import { renderFrame } from '../../../cluster/journal/frames.ts'
import type { RunEvent } from '../../../kernel/events.ts'
import { type Phase, phasesOf } from './phases.ts'

/** Bytes of one run's events that are kept. A run with more is not replayed after its time. */
const MAX_RUN_BYTES = 1024 * 1024
const MAX_PROCESS_BYTES = 64 * 1024 * 1024

/** The room that the captured events of all runs of a process take. */
export type CaptureRoom = { bytes: number }

/**
 * The events of one run, for its replay after its end. The deltas are left out, since the event that follows them has the whole text. It holds the
 * events themselves, which share their texts with the conversation; they are rendered when they are stored.
 */
export class CapturedEvents {
  readonly #room: CaptureRoom
  readonly #elapsedMs: () => number
  #events: { seq: number; event: RunEvent; atMs: number }[] | undefined = []
  #bytes = 0

  /** `elapsedMs` tells the time since the start of the run. */
  constructor(room: CaptureRoom, elapsedMs: () => number) {
    this.#room = room
    this.#elapsedMs = elapsedMs
  }

  add(seq: number, event: RunEvent, bytes: number): void {
    if (!this.#events || isDelta(event)) return
    this.#bytes += bytes
    this.#room.bytes += bytes
    if (this.#bytes > MAX_RUN_BYTES || this.#room.bytes > MAX_PROCESS_BYTES) this.drop()
    else this.#events.push({ seq, event, atMs: this.#elapsedMs() })
  }

  /** The frames of the events, as their readers got them; `undefined` when they were too long. */
  render(): string | undefined {
    return this.#events?.map(({ seq, event }) => renderFrame(seq, event)).join('')
  }

  /** The phases of the run, from the times of its events; `undefined` when they were too long. */
  get phases(): Phase[] | undefined {
    return this.#events && phasesOf(this.#events)
  }

  drop(): void {
    this.#room.bytes -= this.#bytes
    this.#bytes = 0
    this.#events = undefined
  }
}

const DELTAS: ReadonlySet<string> = new Set(['text_delta', 'thinking_delta', 'tool_progress'])

/** Whether the event is an increment, which a replay does not need: a later event has the whole. */
export const isDelta = (event: RunEvent): boolean =>
  DELTAS.has(event.type === 'subagent_event' ? event.event_type : event.type)
