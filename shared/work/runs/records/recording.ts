import type { RunEvent } from '../../../kernel/events.ts'
import { outcomeOf, type RunFigures } from '../run-figures.ts'
import { CapturedEvents, type CaptureRoom } from './captured-events.ts'
import { type RunFacts, type RunRecord, recordOf } from './record.ts'
import type { EndedRun } from './store.ts'

/** Receives the end of a run, or that it goes on in another process. */
type Recorder = { end(recording: RunRecording): void; abandon(recording: RunRecording): void }

/** One run, from its start until its record is stored. */
export class RunRecording {
  readonly facts: RunFacts
  readonly figures: RunFigures
  readonly #recorder: Recorder
  readonly #events: CapturedEvents
  #eventCount = 0
  #record: RunRecord | undefined
  /** The document in which the run is stored as open. */
  open: OpenGroup | undefined
  isRecorded = false

  constructor(facts: RunFacts, figures: RunFigures, parts: { recorder: Recorder; room: CaptureRoom }) {
    this.facts = facts
    this.figures = figures
    this.#recorder = parts.recorder
    this.#events = new CapturedEvents(parts.room)
  }

  get hasEnded(): boolean {
    return this.#record !== undefined
  }

  /** Call it with each event, after `figures` has noted it. `bytes` is the length of its frame. */
  note(event: RunEvent, bytes: number, isLast: boolean): void {
    this.#events.add(++this.#eventCount, event, bytes)
    if (!isLast) return
    const { figures, facts } = this
    const end = { status: outcomeOf(event), endedAt: new Date().toISOString() }
    this.#record = recordOf(facts, figures, { ...end, eventCount: this.#eventCount })
    this.#recorder.end(this)
  }

  /** Another process goes on with the run, and records it. */
  abandon(): void {
    this.#events.drop()
    this.#recorder.abandon(this)
  }

  /** The record and frames to store, as the tenant's settings want them. */
  render(keptDays: number, withPayloads: boolean): EndedRun | undefined {
    if (!this.#record) return undefined
    const { tenant } = this.facts
    const { title: _title, ...withoutTitle } = this.#record
    const record = withPayloads ? this.#record : withoutTitle
    return { tenant, record, frames: withPayloads ? this.#events.render() : undefined, keptDays }
  }

  /** The events are stored, or nobody stores them any more. */
  release(isRecorded: boolean): void {
    this.isRecorded = isRecorded
    this.#events.drop()
  }
}

/** The runs that one document lists as open. `left` are those without a record. */
export type OpenGroup = { id: string; left: Set<RunRecording> }
