import type { RunEvent } from '../../../kernel/events.ts'
import { outcomeOf, type RunFigures } from '../run-figures.ts'
import { CapturedEvents, type CaptureRoom } from './captured-events.ts'
import type { Phase } from './phases.ts'
import { type RunFacts, type RunRecord, recordOf } from './record.ts'

type Parts = {
  room: CaptureRoom
  /** Called when the run has ended. */
  onEnd(record: RunRecord): void
  /** Called when another process goes on with the run. */
  onAbandoned(): void
}

/** One run, from its start until its record is stored. */
export class RunRecording {
  readonly facts: RunFacts
  readonly #figures: RunFigures
  readonly #parts: Parts
  readonly #events: CapturedEvents
  #eventCount = 0
  hasEnded = false
  isRecorded = false

  constructor(facts: RunFacts, figures: RunFigures, parts: Parts) {
    this.facts = facts
    this.#figures = figures
    this.#parts = parts
    this.#events = new CapturedEvents(parts.room, () => figures.ms)
  }

  /** Call it with each event, after the figures have noted it. `bytes` is the length of its frame. */
  note(event: RunEvent, bytes: number, isLast: boolean): void {
    this.#events.add(++this.#eventCount, event, bytes)
    if (!isLast) return
    this.hasEnded = true
    const end = { status: outcomeOf(event), endedAt: new Date().toISOString(), eventCount: this.#eventCount }
    this.#parts.onEnd(recordOf(this.facts, this.#figures, end))
  }

  /** Begins with the events of another process. None above number `lastSeq` was sent. */
  restore(events: readonly (readonly [seq: number, event: RunEvent])[], lastSeq: number): void {
    for (const [seq, event] of events) this.#events.add(seq, event, JSON.stringify(event).length)
    this.#eventCount = lastSeq
  }

  /** Another process goes on with the run, and records it. */
  abandon(): void {
    this.#events.drop()
    this.#parts.onAbandoned()
  }

  /** The frames of its events, as its readers got them, without deltas; `undefined` when they were too long. */
  renderFrames(): string | undefined {
    return this.#events.render()
  }

  /** The phases of the run, as far as its events are kept. */
  get phases(): Phase[] | undefined {
    return this.#events.phases
  }

  /** The events are stored, or nobody stores them any more. */
  release(isRecorded: boolean): void {
    this.isRecorded = isRecorded
    this.#events.drop()
  }
}
