import type { Priority } from '../../agent/providers/port.ts'
import { priorityOf, type RunRequest } from '../../cluster/commands/runs.ts'
import { type AppError, tooMany } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { TenantLimits } from '../tenant-config/config.ts'
import { assertBudget, type Budgets } from './budgets.ts'
import type { KnownLimits } from './known-limits.ts'
import { PLACE_MS, type PlacedRun, type PlaceLimits, type RunPlaces, type TakenPlace } from './port.ts'
import { type NewWait, StartLines, type StartWait } from './start-lines.ts'
import { BATCH_ITEMS, placeLimits, retryAfterSecs } from './start-order.ts'

/** A run that is to start. With `priority` and `waitSecs` it may wait for its place. */
export type Start = PlacedRun & { priority?: Priority | undefined; waitSecs?: number | undefined }

/** The start of a run of this request (D54). */
export const startOf = (run: Pick<Start, 'tenant' | 'runId'>, request: RunRequest): Start => {
  const {
    customer_id: customer,
    deadline_hours: hours,
    wait_secs: waitSecs = hours && HOUR_SECS * hours + LATER_SECS,
  } = request
  return { ...run, customer, priority: priorityOf(request), waitSecs }
}

const HOUR_SECS = 3_600
/** The wait ends this long after the run's deadline, so that the deadline itself ends the run. */
const LATER_SECS = 60

/** Calls `listener` when a run has ended, or at once if it has. */
export type Ending = { whenEnded(listener: () => void): void }

/** Decides whether a tenant may start a run, and holds the places of running runs. */
export interface Admission {
  /**
   * `undefined` when the tenant has no limit that could refuse it. Resolves with a wait when the run may begin only after it. Rejects with
   * `rate_limit` when the run may not start, and with `unavailable` when that is not known.
   */
  admit(start: Start): Promise<StartWait | undefined> | undefined
  /** The wait of a run that another process has accepted and not begun; `undefined` when it does not wait. */
  waitOn(start: Start, since: Date): StartWait | undefined
  /** Whether a start of a run waits for its place, at any process. */
  isWaiting(tenant: TenantId, runId: string): Promise<boolean>
  /** Holds the run's place until its end, as soon as it has one. */
  hold(run: PlacedRun, ends: Ending, wait?: StartWait): void
  /** Frees the place of a run that did not start. */
  release(run: PlacedRun): void
  /** Stops holding a run's place without giving it back: another process has the run, and holds the place. */
  handOver(tenant: TenantId, runId: string): void
}

/** For a process without runtime configuration, in which no tenant has limits. */
export const NO_ADMISSION: Admission = {
  ...{ admit: () => undefined, waitOn: () => undefined, isWaiting: async () => false },
  ...{ hold: () => {}, release: () => {}, handOver: () => {} },
}

export type AdmissionDeps = {
  limits: Pick<KnownLimits, 'of' | 'peek'>
  budgets: Pick<Budgets, 'refusal'>
  places: RunPlaces
  metrics: Pick<Metrics, 'gauge'>
  log: Log
  renewEveryMs?: number
}

const RENEW_EVERY_MS = PLACE_MS / 4
/** How soon running runs are counted when their tenant gets a limit. */
const COUNT_EVERY_MS = 1_000
/** The most waiting starts, of one tenant and in one process. */
const MAX_WAITING = 1_000
const MAX_WAITING_HERE = 10_000
/** For a start that must not wait: the most time to find out whether waiting starts come first. */
const LOOK_MS = 2_000

/** The most time for which a place is kept free for a client that returns after `Retry-After`. */
const MOST_KEPT_SECS = 300
const LATE_CLIENT_SECS = 5

/** `placed`: the run as it is counted, with its customer only if that is limited. */
type Held = { run: PlacedRun; since: number; placed: PlacedRun | undefined }

export class RunAdmission implements Admission {
  readonly #deps: AdmissionDeps
  readonly #lines: StartLines
  readonly #held = new Map<TenantId, Map<string, Held>>()
  readonly #timers: readonly NodeJS.Timeout[]

  constructor(deps: AdmissionDeps) {
    this.#deps = deps
    this.#lines = new StartLines(deps)
    deps.metrics.gauge('starts_waiting', () => this.#lines.size)
    deps.metrics.gauge('starts_waiting_oldest_seconds', () => this.#lines.oldestMs / 1_000)
    const { renewEveryMs = RENEW_EVERY_MS } = deps
    this.#timers = [
      setInterval(() => this.#renew(), renewEveryMs).unref(),
      setInterval(() => this.#count(), Math.min(renewEveryMs, COUNT_EVERY_MS)).unref(),
    ]
  }

  admit(start: Start): Promise<StartWait | undefined> | undefined {
    const limits = this.#deps.limits.of(start.tenant)
    if (!(limits instanceof Promise) && !limitsRuns(limits, start)) return undefined
    return this.#admit(start, limits)
  }

  waitOn(start: Start, since: Date): StartWait | undefined {
    const limits = this.#deps.limits.peek(start.tenant)
    if (start.waitSecs === undefined || (limits && !limitsPlaces(limits, start))) return undefined
    const wait = this.#lines.wait({ ...waitOf(start), waitedMs: Math.max(0, Date.now() - since.getTime()) })
    if (limits) this.#try(this.#lines.give(wait, placeLimits(limits, start.customer))) // The run may already have a place.
    return wait
  }

  async isWaiting(tenant: TenantId, runId: string): Promise<boolean> {
    return this.#lines.has(tenant, runId) || this.#deps.places.isWaiting(tenant, runId)
  }

  hold(run: PlacedRun, ends: Ending, wait?: StartWait): void {
    if (wait) void wait.turn.then((how) => how === 'placed' && this.#hold(run, ends))
    else this.#hold(run, ends)
  }

  #hold(run: PlacedRun, ends: Ending): void {
    const { tenant, runId } = run
    const limits = this.#deps.limits.peek(tenant)
    const ofTenant = this.#held.get(tenant) ?? new Map<string, Held>()
    const held: Held = { run, since: performance.now(), placed: undefined }
    this.#held.set(tenant, ofTenant.set(runId, held))
    if (!limits || limitsPlaces(limits, run)) this.#place(tenant, [held])
    ends.whenEnded(() => {
      this.handOver(tenant, runId)
      if (held.placed) this.release(run, performance.now() - held.since)
    })
  }

  handOver(tenant: TenantId, runId: string): void {
    const ofTenant = this.#held.get(tenant)
    ofTenant?.delete(runId)
    if (ofTenant?.size === 0) this.#held.delete(tenant)
  }

  /** `ranMs`: how long the run took. */
  release(run: PlacedRun, ranMs?: number): void {
    this.#try(this.#deps.places.release(run, ranMs).then(() => this.#lines.look(run.tenant)))
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  async #admit(start: Start, known: TenantLimits | Promise<TenantLimits>): Promise<StartWait | undefined> {
    const { budgets, places } = this.#deps
    const limits = await known
    await assertBudget(budgets, start.tenant, start.customer === BATCH_ITEMS ? undefined : start.customer)
    if (!limitsPlaces(limits, start)) return undefined
    const allowed = placeLimits(limits, start.customer)
    const found = await places.take(start, allowed)
    if (found.place === 'taken') return undefined
    if (start.waitSecs === undefined) {
      if (found.place === 'behind' && (await this.#beginsNow(start))) return undefined
    } else if (this.#mayWait(start.tenant, found)) return this.#lines.wait(waitOf(start))
    throw await this.#refuse(start, allowed, found)
  }

  /** If a tenant has only one place, it is kept free of further batch items until the client can return (D55.2). */
  async #refuse({ tenant, customer }: Start, limits: PlaceLimits, found: TakenPlace): Promise<AppError> {
    const refusal = refusalOf(limits, found)
    if (limits.tenant === 1 && customer !== BATCH_ITEMS && found.place !== 'customer_full') {
      const secs = Math.min(refusal.retryAfterSecs ?? 0, MOST_KEPT_SECS) + LATE_CLIENT_SECS
      await this.#deps.places.keepFree(tenant, 1_000 * secs)
    }
    return refusal
  }

  #mayWait(tenant: TenantId, { waiting }: TakenPlace): boolean {
    return Math.max(waiting, this.#lines.sizeOf(tenant)) < MAX_WAITING && this.#lines.size < MAX_WAITING_HERE
  }

  /** Whether the waiting starts leave room for a start that must not wait. */
  async #beginsNow(start: Start): Promise<boolean> {
    const waiting = this.#lines.wait({ ...waitOf(start), waitMs: LOOK_MS })
    const begins = await waiting.begins().finally(() => waiting.leave())
    return begins
  }

  #renew(): void {
    for (const [tenant, runs] of this.#held)
      this.#place(
        tenant,
        [...runs.values()].filter(({ placed }) => placed),
      )
  }

  #count(): void {
    for (const tenant of this.#held.keys()) this.#try(this.#countNew(tenant))
  }

  /** Gives places to runs that started before their tenant, or their customer, had a limit. */
  async #countNew(tenant: TenantId): Promise<void> {
    const limits = await this.#deps.limits.of(tenant)
    if (limits.concurrent_runs === null && limits.customers === undefined) return
    const runs = [...(this.#held.get(tenant)?.values() ?? [])].filter(({ run }) => limitsPlaces(limits, run))
    const isNew = ({ run, placed }: Held) => !placed || placed.customer !== this.#counted(run).customer
    this.#place(tenant, runs.filter(isNew))
  }

  #place(tenant: TenantId, runs: readonly Held[]): void {
    if (runs.length === 0) return
    for (const held of runs) held.placed = this.#counted(held.run)
    const placed = runs.flatMap((held) => held.placed ?? [])
    this.#try(this.#deps.places.renew(tenant, placed))
  }

  /** Names the customer only where its runs are limited. */
  #counted({ customer, ...run }: PlacedRun): PlacedRun {
    const limits = this.#deps.limits.peek(run.tenant)
    return limits && placeLimits(limits, customer).customer !== null ? { ...run, customer } : run
  }

  /** A place that could not be renewed or released is free again after a while. */
  #try(work: Promise<void>): void {
    work.catch((cause: unknown) => this.#deps.log.debug('the places of runs cannot be reached', { cause }))
  }
}

const waitOf = ({ tenant, runId, customer, priority = 'normal', waitSecs = 0 }: Start): NewWait => ({
  ...{ tenant, runId, customer, priority },
  waitMs: waitSecs * 1_000,
})

function limitsPlaces(limits: TenantLimits, start: Pick<Start, 'customer'>): boolean {
  const { tenant, customer } = placeLimits(limits, start.customer)
  return tenant !== null || customer !== null
}

const limitsRuns = (limits: TenantLimits, start: Start): boolean =>
  limitsPlaces(limits, start) ||
  limits.tokens_per_day !== null ||
  limits.usd_per_day !== null ||
  (start.customer !== undefined && limits.customers !== undefined)

function refusalOf({ tenant, customer }: PlaceLimits, found: TakenPlace): AppError {
  const [whose, limit] = found.place === 'customer_full' ? ['customer', customer] : ['tenant', tenant]
  const waiting = found.waiting > 0 ? `, and ${found.waiting} that wait` : ''
  return tooMany(
    `this ${whose} has ${limit} runs at work, its limit${waiting}; try again when one has ended, or send "wait_secs"`,
    retryAfterSecs(found, limit ?? 1),
  )
}
