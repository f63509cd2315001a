import { AppError } from '../../../kernel/errors.ts'
import type { RunEvent } from '../../../kernel/events.ts'
import { newToken } from '../../../kernel/ids.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { outcomeOf, type RunFigures } from '../run-figures.ts'
import { CapturedEvents, type CaptureRoom } from './captured-events.ts'
import { type RunFacts, type RunRecord, recordOf } from './record.ts'
import type { EndedRun, RunRecordStore } from './store.ts'

export type RunRecorderDeps = {
  store: Pick<RunRecordStore, 'add' | 'addOpen' | 'deleteOpen'>
  auditOf(tenant: TenantId): Promise<{ store_payloads: boolean; retention_days: number }>
  /** This process's name among the owners of open runs. */
  owner(): string
  /** How long an end waits for others, in milliseconds. */
  batchMs: number
  metrics: Metrics
  log: Log
}

/** A run that lasts longer than this is stored as open, so that the death of its process does not lose it. */
const OPEN_AFTER_MS = 250
const RETRY_MS = 1_000
/** Records that wait for the store. Beyond it the oldest are dropped, and counted. */
const MAX_WAITING = 10_000
const MAX_BATCH = 500
/** How long `settled` waits for a store that is away. */
const SETTLE_TRIES = 3

/** One run, from its start until its record is stored. */
class RunRecording {
  readonly facts: RunFacts
  readonly figures: RunFigures
  readonly #recorder: RunRecorder
  readonly #events: CapturedEvents
  #eventCount = 0
  #record: RunRecord | undefined
  /** The document in which the run is stored as open. */
  open: OpenGroup | undefined
  isRecorded = false

  constructor(facts: RunFacts, figures: RunFigures, parts: { recorder: RunRecorder; room: CaptureRoom }) {
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

  /** What is stored, as the tenant's settings want it. */
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
type OpenGroup = { id: string; left: Set<RunRecording> }

/** Records every run behind its end, several with one command. No run waits for it (D20). */
export class RunRecorder {
  readonly #deps: RunRecorderDeps
  readonly #room: CaptureRoom = { bytes: 0 }
  /** Runs that are neither stored as open nor ended, oldest first. */
  readonly #fresh = new Map<RunRecording, number>()
  #ended: RunRecording[] = []
  /** The documents of open runs that are no longer needed. */
  readonly #closed: string[] = []
  #timer: NodeJS.Timeout | undefined
  #dueAt = Infinity
  #writing: Promise<boolean> | undefined

  constructor(deps: RunRecorderDeps) {
    this.#deps = deps
  }

  begin(facts: RunFacts, figures: RunFigures): RunRecording {
    const recording = new RunRecording(facts, figures, { recorder: this, room: this.#room })
    this.#fresh.set(recording, performance.now())
    this.#schedule(OPEN_AFTER_MS)
    return recording
  }

  end(recording: RunRecording): void {
    this.#fresh.delete(recording)
    this.#ended.push(recording)
    if (this.#ended.length > MAX_WAITING) this.#giveUp(this.#ended.splice(0, 1), 'too many wait for the store')
    this.#schedule(this.#deps.batchMs)
  }

  /** The other runs of the same document are stored as open once more, and the document is deleted. */
  abandon(recording: RunRecording): void {
    this.#fresh.delete(recording)
    const { open } = recording
    if (!open) return
    open.left.delete(recording)
    this.#dissolve(open)
    this.#schedule(this.#deps.batchMs)
  }

  /** Deletes the document, and stores its runs as open once more. */
  #dissolve(group: OpenGroup): void {
    for (const recording of group.left) {
      recording.open = undefined
      if (!recording.hasEnded) this.#fresh.set(recording, -Infinity)
    }
    this.#closed.push(group.id)
  }

  /** Resolves when the runs that have ended are recorded, or soon after when the store is away. */
  async settled(): Promise<void> {
    for (let tries = 0; tries < SETTLE_TRIES && this.#hasWork(); ) {
      if (!(await this.#flush())) tries++
    }
    clearTimeout(this.#timer)
  }

  #hasWork(): boolean {
    return this.#writing !== undefined || this.#ended.length > 0 || this.#closed.length > 0
  }

  #schedule(ms: number): void {
    const dueAt = performance.now() + ms
    if (dueAt >= this.#dueAt) return
    clearTimeout(this.#timer)
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => void this.#flush(), ms).unref()
  }

  /** Writes what waits, one batch at a time. Resolves with `false` when the store did not take it. */
  async #flush(): Promise<boolean> {
    this.#dueAt = Infinity
    if (this.#writing) return this.#writing
    this.#writing = this.#write()
    const isWritten = await this.#writing
    this.#writing = undefined
    if (!isWritten) this.#schedule(RETRY_MS)
    else if (this.#ended.length > 0 || this.#closed.length > 0) this.#schedule(this.#deps.batchMs)
    else if (this.#fresh.size > 0) this.#schedule(OPEN_AFTER_MS)
    return isWritten
  }

  async #write(): Promise<boolean> {
    const batch = this.#ended.splice(0, MAX_BATCH)
    try {
      await this.#recordOpen()
      await this.#record(batch)
      for (let id = this.#closed[0]; id !== undefined; id = this.#closed[0]) {
        await this.#deps.store.deleteOpen(id)
        this.#closed.shift()
      }
      return true
    } catch (cause) {
      const waiting = batch.filter(({ isRecorded }) => !isRecorded)
      if (cause instanceof AppError && cause.kind === 'unavailable') this.#ended.unshift(...waiting)
      else this.#giveUp(waiting, 'they could not be stored', cause)
      const surplus = this.#ended.length - MAX_WAITING
      if (surplus > 0) this.#giveUp(this.#ended.splice(0, surplus), 'too many wait for the store')
      return false
    }
  }

  async #recordOpen(): Promise<void> {
    const until = performance.now() - OPEN_AFTER_MS
    const runs = [...this.#fresh].filter(([, begunAt]) => begunAt <= until).map(([recording]) => recording)
    if (runs.length === 0) return
    const group: OpenGroup = { id: newToken(), left: new Set(runs) }
    for (const recording of runs) {
      this.#fresh.delete(recording)
      recording.open = group
    }
    try {
      const facts = runs.map(({ facts: { title: _title, ...known } }) => known)
      await this.#deps.store.addOpen({ id: group.id, owner: this.#deps.owner(), runs: facts })
    } catch (cause) {
      this.#dissolve(group)
      throw cause
    }
  }

  async #record(batch: readonly RunRecording[]): Promise<void> {
    if (batch.length === 0) return
    const ended = await Promise.all(batch.map((recording) => this.#render(recording)))
    await this.#deps.store.add(ended.flatMap((each) => each ?? []))
    for (const recording of batch) {
      recording.release(true)
      this.#leave(recording)
    }
  }

  async #render(recording: RunRecording): Promise<EndedRun | undefined> {
    const { store_payloads, retention_days } = await this.#deps.auditOf(recording.facts.tenant)
    return recording.render(retention_days, store_payloads)
  }

  #leave(recording: RunRecording): void {
    const { open } = recording
    recording.open = undefined
    if (open?.left.delete(recording) && open.left.size === 0) this.#closed.push(open.id)
  }

  #giveUp(lost: readonly RunRecording[], why: string, cause?: unknown): void {
    for (const recording of lost) {
      recording.release(false)
      this.#leave(recording)
    }
    this.#deps.metrics.count('run_records_lost', lost.length)
    if (lost.length > 0) this.#deps.log.error(`runs were not recorded: ${why}`, { count: lost.length, cause })
  }
}
