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
  /** The least time between two writes, in milliseconds, unless a full batch waits: under load, ends wait for others. */
  batchMs: number
  /** How long the end of a plan's step waits for others, in milliseconds: the steps of a plan often end shortly after each other. */
  stepWaitMs: number
  metrics: Metrics
  log: Log
}

/** The part of its runs that a tenant keeps. */
type Kept = { store_payloads: boolean; retention_days: number }

/** The end of a run that is to be recorded. */
export interface WaitingEnd {
  readonly tenant: TenantId
  readonly kind: RunRecord['kind']
  /** Read only when it is stored: a recording makes it anew each time. */
  readonly record: RunRecord
  /** Its events without the deltas, as far as they are known, and the length of their frames. */
  readonly events?: readonly CapturedEvent[] | undefined
  readonly eventBytes?: number | undefined
  readonly request?: RunRecord['request']
  /** Called once, when the record is stored or given up. `hasEvents`: its events are stored with it. */
  settle?(isRecorded: boolean, hasEvents?: boolean): void
}

/** Ends that wait for the store. Beyond it the oldest of the tenant that has most are dropped, and counted. */
const MAX_WAITING = 10_000
const MAX_BATCH = 500
/** So many are written without waiting for others: more at once would cost no less for each. */
const FULL_BATCH = 100

/** Stores the records of ended runs behind their ends, several with one command, as their tenants want them kept (D20). */
export class EndQueue {
  readonly #deps: EndQueueDeps
  readonly #loop: WriteLoop
  #waiting: WaitingEnd[] = []
  #dueAt = Infinity
  /** How many were dropped since the last line about them. */
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

  /** Resolves when all ends are recorded, or soon after when the store is away. */
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

  /** One line for all that were dropped since the last try. */
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

/** So many ends, each the oldest of the tenant that has most then. */
function surplusOf(waiting: readonly WaitingEnd[], count: number): Set<WaitingEnd> {
  const byTenant = Map.groupBy(waiting, ({ tenant }) => tenant)
  const surplus = new Set<WaitingEnd>()
  while (surplus.size < count) {
    const most = [...byTenant.values()].reduce((one, other) => (other.length > one.length ? other : one))
    for (const end of most.splice(0, 1)) surplus.add(end)
  }
  return surplus
}

/** Title, attachments, events and request show what a prompt and its answer say. */
function asKept(
  { tenant, record, events, eventBytes, request }: WaitingEnd,
  { store_payloads, retention_days: keptDays }: Kept,
): EndedRun {
  if (store_payloads) return { tenant, record, events, eventBytes, request, keptDays }
  const { title: _title, attachments: _attachments, ...withoutPayload } = record
  return { tenant, record: withoutPayload, keptDays }
}
