import { renderData } from '../../../cluster/journal/frames.ts'
import type { RunEvent } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { isoTime } from '../../../kernel/time.ts'
import type { JournalMemory } from '../journal-memory.ts'
import { outcomeOf, type RunFigures } from '../run-figures.ts'
import type { KeptRequest } from '../run-identity.ts'
import { type CapturedEvent, CapturedEvents, isDelta } from './captured-events.ts'
import type { WaitingEnd } from './end-queue.ts'
import { type Phase, phasesOf } from './phases.ts'
import { type RunEnd, type RunFacts, type RunRecord, recordOf } from './record.ts'

/** `bytes` is the length of an event's frame, and `data` its data, if it is rendered. */
export type NotedFrame = { bytes: number; data?: string | undefined; isLast: boolean }

/**
 * The owner of all recordings of a process. Each recording calls it when its run has ended, its record is stored, or
 * another process continues the run.
 */
export interface RecordingOwner {
  /** The memory for the events of its runs. */
  readonly room: Pick<JournalMemory, 'budgetOf'>
  /** The run has ended. */
  onEnded(recording: RunRecording): void
  /** The record of the run is stored or dropped. */
  onSettled(recording: RunRecording): void
  /** Another process continues the run. */
  onAbandoned(recording: RunRecording): void
}

const MAX_REQUEST_CHARS = 64 * 1024

/** One run, from its start until its record is stored. */
export class RunRecording implements WaitingEnd {
  readonly facts: RunFacts
  readonly #figures: RunFigures
  readonly #owner: RecordingOwner
  readonly #events: CapturedEvents
  #request: KeptRequest | undefined = undefined
  #eventCount = 0
  #end: RunEnd | undefined = undefined
  isRecorded = false
  /** Whether the stored record contains the events. */
  isReplayable = false

  constructor(facts: RunFacts, figures: RunFigures, owner: RecordingOwner) {
    this.facts = facts
    this.#figures = figures
    this.#owner = owner
    this.#events = new CapturedEvents(owner.room.budgetOf(facts.tenant))
  }

  get hasEnded(): boolean {
    return this.#end !== undefined
  }

  get tenant(): TenantId {
    return this.facts.tenant
  }

  get kind(): RunFacts['kind'] {
    return this.facts.kind
  }

  /** Built again at each read. Throws while the run continues. */
  get record(): RunRecord {
    if (!this.#end) throw new Error('a run that continues has no record')
    return recordOf(this.facts, this.#figures, this.#end)
  }

  /** The events of the run without the deltas; `undefined` when they were too long. */
  get events(): readonly CapturedEvent[] | undefined {
    return this.#events.all
  }

  get eventBytes(): number {
    return this.#events.bytes
  }

  /** The phases of the run, if its events are kept. */
  get phases(): Phase[] | undefined {
    return this.events && phasesOf(this.events)
  }

  /** The request that started the run, as long as its events are kept (D20.6). */
  get request(): KeptRequest | undefined {
    return this.events && this.#request
  }

  /** Keeps the request, unless it is too long. */
  keep(request: KeptRequest): void {
    const { length } = JSON.stringify(request)
    if (length > MAX_REQUEST_CHARS) return
    this.#request = request
    this.#events.reserve(length)
  }

  /** Call it with each event, after the figures have noted it. */
  note(event: RunEvent, { bytes, data, isLast }: NotedFrame): void {
    const seq = ++this.#eventCount
    if (!isDelta(event)) this.#events.add({ seq, atMs: Math.round(this.#figures.ms), event, data }, bytes)
    if (!isLast) return
    this.#end = { status: outcomeOf(event), endedAt: isoTime(), eventCount: this.#eventCount }
    this.#owner.onEnded(this)
  }

  /** Begins with the events of another process, which sent none above number `lastSeq`. */
  restore(events: readonly (readonly [seq: number, event: RunEvent])[], lastSeq: number): void {
    const atMs = Math.round(this.#figures.ms)
    for (const [seq, event] of events) {
      const data = renderData(event)
      if (!isDelta(event)) this.#events.add({ seq, atMs, event, data }, data.length)
    }
    this.#eventCount = lastSeq
  }

  /** Another process continues the run and records it. */
  abandon(): void {
    this.#events.drop()
    this.#owner.onAbandoned(this)
  }

  /** The record is stored, or will never be stored. */
  settle(isRecorded: boolean, hasEvents = false): void {
    this.isRecorded = isRecorded
    this.isReplayable = hasEvents
    this.#events.drop()
    this.#owner.onSettled(this)
  }
}
