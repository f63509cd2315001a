import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { CapturedEvent } from './captured-events.ts'
import type { RunRecord } from './record.ts'
import { isAway } from './run-history.ts'
import type { EndedRun, RunRecordStore } from './store.ts'
import { WriteLoop } from './write-loop.ts'

export type EndQueueDeps = {
  store: Pick<RunRecordStore, 'add'>
  auditOf(tenant: TenantId): Promise<Kept>
  /** The least time between two writes, in milliseconds, unless a full batch waits. Under load, ends therefore wait and are written together. */
  batchMs: number
  /** How long the end of a plan's step waits to be written with others, in milliseconds: the steps of a plan often end shortly after each other. */
  stepWaitMs: number
  metrics: Metrics
  log: Log
}

/** What a tenant keeps of its runs. */
type Kept = { store_payloads: boolean; retention_days: number }

/** The end of a run that must be recorded. */
export interface WaitingEnd {
  readonly tenant: TenantId
  readonly kind: RunRecord['kind']
  /** Read only when the record is stored: a recording builds it again at each read. */
  readonly record: RunRecord
  /** The events of the run without the deltas, if they are known. `eventBytes`: the length of their frames. */
  readonly events?: readonly CapturedEvent[] | undefined
  readonly eventBytes?: number | undefined
  readonly request?: RunRecord['request']
  /** Called once, when the record is stored or dropped. `hasEvents`: the events are stored with it. */
  settle?(isRecorded: boolean, hasEvents?: boolean): void
}

/** The most ends that wait for the store. Above it the oldest ends of the tenant with the most ends are dropped and counted. */
const MAX_WAITING = 10_000
const MAX_BATCH = 500
/** This many ends are written without waiting for more: a larger batch would cost no less per end. */
const FULL_BATCH = 100

/** Stores the records of runs after they have ended, several with one command. A record contains only what its tenant keeps (D20). */
export class EndQueue {
  readonly #deps: EndQueueDeps
  readonly #loop: WriteLoop
  #waiting: WaitingEnd[] = []
  #dueAt = Infinity
  /** How many ends were dropped since the last log line about it. */
  #dropped = 0

  constructor(deps: EndQueueDeps) {
    this.#deps = deps
    this.#loop = new WriteLoop({
      write: () => this.#write(),
      dueInMs: () => (this.#waiting.length > 0 ? Math.max(0, this.#dueAt - performance.now()) : undefined),
      leastMs: () => deps.batchMs,
      isFull: () => this.#isFull,
    })
  }

  get #isFull(): boolean {
    return this.#waiting.length >= FULL_BATCH
  }

  add(end: WaitingEnd): void {
    this.#waiting.push(end)
    this.#dropSurplus()
    const waitMs = end.kind === 'step' && !this.#isFull ? this.#deps.stepWaitMs : 0
    this.#dueAt = Math.min(this.#dueAt, performance.now() + waitMs)
    this.#loop.schedule(waitMs)
  }

  /** Resolves when all ends are recorded, or shortly after that time when the store does not answer. */
  settled(): Promise<void> {
    this.#dueAt = -Infinity
    return this.#loop.settled()
  }

  async #write(): Promise<boolean> {
    const batch = this.#waiting.splice(0, MAX_BATCH)
    this.#dueAt = this.#waiting.length > 0 ? -Infinity : Infinity
    const isWritten = await this.#record(batch)
    this.#reportDropped()
    return isWritten
  }

  async #record(batch: readonly WaitingEnd[]): Promise<boolean> {
    let kept: EndedRun[]
    try {
      kept = await this.#asKept(batch)
      await this.#deps.store.add(kept)
    } catch (cause) {
      this.#dueAt = -Infinity
      if (isAway(cause)) this.#waiting.unshift(...batch)
      else this.#giveUp(batch, cause)
      this.#dropSurplus()
      return false
    }
    for (const [i, end] of batch.entries()) end.settle?.(true, kept[i]?.events !== undefined)
    return true
  }

  async #asKept(batch: readonly WaitingEnd[]): Promise<EndedRun[]> {
    const settings = new Map<TenantId, Kept>()
    for (const { tenant } of batch) if (!settings.has(tenant)) settings.set(tenant, await this.#deps.auditOf(tenant))
    return batch.flatMap((end) => {
      const kept = settings.get(end.tenant)
      return kept ? [asKept(end, kept)] : []
    })
  }

  #giveUp(lost: readonly WaitingEnd[], cause: unknown): void {
    this.#drop(lost)
    this.#deps.log.error('runs could not be recorded', { count: lost.length, cause })
  }

  #dropSurplus(): void {
    const surplus = this.#waiting.length - MAX_WAITING
    if (surplus <= 0) return
    const dropped = surplusOf(this.#waiting, surplus)
    this.#waiting = this.#waiting.filter((end) => !dropped.has(end))
    this.#drop([...dropped])
    this.#dropped += surplus
  }

  /** Logs one line for all ends that were dropped since the last attempt. */
  #reportDropped(): void {
    if (this.#dropped > 0)
      this.#deps.log.error('runs were not recorded: too many wait for the store', { count: this.#dropped })
    this.#dropped = 0
  }

  #drop(lost: readonly WaitingEnd[]): void {
    for (const end of lost) end.settle?.(false)
    this.#deps.metrics.count('run_records_lost', lost.length)
  }
}

/** Returns this many ends: each is the oldest end of the tenant that then has the most. */
function surplusOf(waiting: readonly WaitingEnd[], count: number): Set<WaitingEnd> {
  const byTenant = Map.groupBy(waiting, ({ tenant }) => tenant)
  const surplus = new Set<WaitingEnd>()
  while (surplus.size < count) {
    const most = [...byTenant.values()].reduce((one, other) => (other.length > one.length ? other : one))
    for (const end of most.splice(0, 1)) surplus.add(end)
  }
  return surplus
}

/** Title, attachments, events and request contain text of the prompt and the answer. */
function asKept(
  { tenant, record, events, eventBytes, request }: WaitingEnd,
  { store_payloads, retention_days: keptDays }: Kept,
): EndedRun {
  if (store_payloads) return { tenant, record, events, eventBytes, request, keptDays }
  const { title: _title, attachments: _attachments, ...withoutPayload } = record
  return { tenant, record: withoutPayload, keptDays }
}
