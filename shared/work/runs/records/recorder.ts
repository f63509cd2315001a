import { newToken } from '../../../kernel/ids.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { RunFigures } from '../run-figures.ts'
import type { CaptureRoom } from './captured-events.ts'
import type { RunFacts } from './record.ts'
import { type OpenGroup, RunRecording } from './recording.ts'
import { isAway } from './run-history.ts'
import type { EndedRun, RunRecordStore } from './store.ts'

export type RunRecorderDeps = {
  store: Pick<RunRecordStore, 'add' | 'addOpen' | 'deleteOpen'>
  auditOf(tenant: TenantId): Promise<{ store_payloads: boolean; retention_days: number }>
  /** This process's name among the owners of open runs. */
  owner(): string
  /** The least time between two writes, in milliseconds: under load, ends wait for others. */
  batchMs: number
  /** A run that lasts longer than this is stored as open, so that the death of its process does not lose it. */
  openAfterMs: number
  metrics: Metrics
  log: Log
}

const RETRY_MS = 1_000
/** Records that wait for the store. Beyond it the oldest are dropped, and counted. */
const MAX_WAITING = 10_000
const MAX_BATCH = 500
/** How long `settled` waits for a store that is away. */
const SETTLE_TRIES = 3

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
  #writtenAt = -Infinity
  #dueAt = Infinity
  /** The time of the next try, after one that the store did not take. */
  #retryAt = 0
  /** How many runs were dropped since the last line about them. */
  #dropped = 0
  #writing: Promise<boolean> | undefined

  constructor(deps: RunRecorderDeps) {
    this.#deps = deps
  }

  begin(facts: RunFacts, figures: RunFigures): RunRecording {
    const recording = new RunRecording(facts, figures, { recorder: this, room: this.#room })
    this.#fresh.set(recording, performance.now())
    this.#schedule(this.#deps.openAfterMs)
    return recording
  }

  end(recording: RunRecording): void {
    this.#fresh.delete(recording)
    this.#ended.push(recording)
    this.#dropSurplus()
    this.#scheduleNext()
  }

  /** The other runs of the same document are stored as open once more, and the document is deleted. */
  abandon(recording: RunRecording): void {
    this.#fresh.delete(recording)
    const { open } = recording
    if (!open) return
    open.left.delete(recording)
    this.#dissolve(open)
    this.#scheduleNext()
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
    this.#dueAt = Infinity
  }

  #hasWork(): boolean {
    return this.#writing !== undefined || this.#ended.length > 0 || this.#closed.length > 0
  }

  #scheduleNext(): void {
    this.#schedule(Math.max(0, this.#writtenAt + this.#deps.batchMs - performance.now()))
  }

  #schedule(ms: number): void {
    const now = performance.now()
    const dueAt = Math.max(now + ms, this.#retryAt)
    if (dueAt >= this.#dueAt) return
    clearTimeout(this.#timer)
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => void this.#flush(), dueAt - now).unref()
  }

  /** Writes what waits, one batch at a time. Resolves with `false` when the store did not take it. */
  async #flush(): Promise<boolean> {
    this.#dueAt = Infinity
    if (this.#writing) return this.#writing
    this.#writtenAt = performance.now()
    this.#writing = this.#write()
    const isWritten = await this.#writing
    this.#writing = undefined
    this.#reportDropped()
    this.#retryAt = isWritten ? 0 : performance.now() + RETRY_MS
    if (this.#ended.length > 0 || this.#closed.length > 0) this.#scheduleNext()
    else if (this.#fresh.size > 0) this.#schedule(this.#deps.openAfterMs)
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
      if (isAway(cause)) this.#ended.unshift(...waiting)
      else this.#giveUp(waiting, cause)
      this.#dropSurplus()
      return false
    }
  }

  async #recordOpen(): Promise<void> {
    const until = performance.now() - this.#deps.openAfterMs
    const due = [...this.#fresh].filter(([, begunAt]) => begunAt <= until).slice(0, MAX_BATCH)
    if (due.length === 0) return
    const runs = due.map(([recording]) => recording)
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
      if (isAway(cause)) throw cause
      for (const recording of group.left) this.#fresh.delete(recording)
      this.#deps.log.error('runs that last were not stored: the death of this process loses them', { cause })
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

  #giveUp(lost: readonly RunRecording[], cause: unknown): void {
    this.#drop(lost)
    if (lost.length > 0) this.#deps.log.error('runs could not be recorded', { count: lost.length, cause })
  }

  #dropSurplus(): void {
    const surplus = this.#ended.length - MAX_WAITING
    if (surplus <= 0) return
    this.#drop(this.#ended.splice(0, surplus))
    this.#dropped += surplus
  }

  /** One line for all that were dropped since the last try. */
  #reportDropped(): void {
    if (this.#dropped > 0)
      this.#deps.log.error('runs were not recorded: too many wait for the store', { count: this.#dropped })
    this.#dropped = 0
  }

  #drop(lost: readonly RunRecording[]): void {
    for (const recording of lost) {
      recording.release(false)
      this.#leave(recording)
    }
    this.#deps.metrics.count('run_records_lost', lost.length)
  }
}
