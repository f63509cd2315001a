import { setTimeout as sleep } from 'node:timers/promises'
import type { RunFilter, RunPage, RunStatus } from '../../cluster/commands/runs.ts'
import { Journal, type JournalLimits } from '../../cluster/journal/journal.ts'
import { pageOf } from '../../cluster/list-page.ts'
import { eventLoop } from '../../kernel/async/loop-budget.ts'
import { notFound, tooMany } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { TenantShares } from '../../platform/fairness/tenant-shares.ts'
import { EndedRuns } from './ended-runs.ts'
import { ExpiryQueue } from './expiry-queue.ts'
import { JournalMemory } from './journal-memory.ts'
import { Run, type RunHooks } from './run.ts'
import type { RunIdentity } from './run-identity.ts'

export type RunsLimits = {
  maxLive: number
  /** `maxLive` by default. */
  maxLivePerTenant?: number
  /** How long a run continues without a reader, and how long an ended one stays known (D4.5b). */
  resumeMs: number
  maxJournalBytes: number
  /** How many ended runs are kept; 20,000 by default. */
  maxEnded?: number
  journal?: JournalLimits
}

export type RunsHooks = RunHooks & {
  /** Called after a run was forgotten, when its other data can be removed too. */
  onForgotten(run: Run): void
}

const MAX_ENDED = 20_000
/** How often a process that shuts down looks whether it is still needed. */
const LOOK_MS = 20
const BUSY_RETRY_SECS = 1

/** The runs of this process: live ones, and ended ones for as long as their readers may come back (D4.5b). */
export class Runs {
  readonly #limits: RunsLimits
  readonly #hooks: RunsHooks
  readonly #memory: JournalMemory
  readonly #known = new Map<string, Run>()
  /** The runs without a reader, which are forgotten when their time is over. */
  readonly #unread: ExpiryQueue<Run>
  readonly #live = new Set<Run>()
  /** The live runs, without those that were aborted in favour of others. */
  readonly #slots: TenantShares
  readonly #givenUp = new Set<Run>()
  /** Live runs whose last reader has left, in the order in which they left. */
  readonly #orphans = new Set<Run>()
  readonly #ended = new EndedRuns()
  /** Those that still have their frames. */
  readonly #replayable = new EndedRuns()
  /** Called whenever a run has ended or is no longer known. */
  readonly #listeners = new Set<() => void>()

  constructor(limits: RunsLimits, hooks: RunsHooks) {
    this.#limits = limits
    this.#hooks = hooks
    const { maxLive, maxLivePerTenant = maxLive } = limits
    this.#slots = new TenantShares({ max: maxLive, maxPerTenant: maxLivePerTenant })
    this.#memory = new JournalMemory(limits.maxJournalBytes)
    this.#unread = new ExpiryQueue(limits.resumeMs, (run) => this.#forget(run))
  }

  get live(): ReadonlySet<Run> {
    return this.#live
  }

  /** Registers a new run. Throws `rate_limit` when all runs that may be live, in all or of one tenant, have readers. */
  open(identity: RunIdentity): Run {
    this.#makeRoom(identity.tenant)
    return this.adopt(identity)
  }

  /** Registers a run that another process has accepted already. It takes a slot even where there is none. */
  adopt(identity: RunIdentity): Run {
    this.#slots.add(identity.tenant, 1)
    const budget = this.#memory.budgetOf(identity.tenant)
    const journal = new Journal(budget, this.#limits.journal, () => this.#onReadersChanged(run))
    const run = new Run(identity, { journal, loop: eventLoop }, this.#hooks)
    this.#known.set(run.id, run)
    this.#live.add(run)
    this.#restartTime(run)
    void run.ended.then(() => run.isAbandoned || this.#settle(run))
    return run
  }

  /** Counts the known runs by status. */
  countByStatus(): Record<RunStatus, number> {
    const counts = { running: 0, waiting: 0, done: 0, failed: 0, cancelled: 0 }
    for (const { status } of this.#known.values()) counts[status]++
    return counts
  }

  /** Throws `not_found` for an unknown run and for another tenant's. */
  get(tenant: TenantId, runId: string): Run {
    const run = this.#known.get(runId)
    if (run?.tenant !== tenant) throw notFound(`no run ${runId}: it never existed, or it ended too long ago`)
    return run
  }

  has(tenant: TenantId, runId: string): boolean {
    return this.#known.get(runId)?.tenant === tenant
  }

  list(tenant: TenantId, { status, among, ...where }: RunFilter): RunPage {
    const runs = [...this.#known.values()].filter(
      (run) => run.tenant === tenant && (status === undefined || run.status === status) && isAmong(among, run),
    )
    const { page, next } = pageOf(runs, ({ startedAt, id }) => ({ startedMs: startedAt.getTime(), id }), where)
    return { runs: page.map((run) => run.summary), next_cursor: next }
  }

  /**
   * Resolves when no run is live. Those that still are after `graceMs` end with `worker_draining`, except those for which `isLeaving`
   * returns `true`: they wait to be adopted by another process.
   */
  async endAll(graceMs: number, isLeaving: (run: Run) => boolean = () => false): Promise<void> {
    const timer = setTimeout(() => {
      for (const run of this.#live) if (!isLeaving(run)) run.cancel('worker_draining')
    }, graceMs)
    await this.#until(() => this.#live.size === 0)
    clearTimeout(timer)
  }

  /**
   * Resolves when nobody needs this process for a run any more, or `signal` is aborted: each is forgotten, or no reader is left and those that
   * are to come find its events in its record.
   */
  async served(signal: AbortSignal): Promise<void> {
    const isNeeded = (run: Run) => !run.isReplayable || run.journal.readerCount > 0
    while (!signal.aborted && [...this.#known.values()].some(isNeeded)) await sleep(LOOK_MS)
  }

  /** Forgets a run: another process has adopted it. Its readers get a gap. */
  release(run: Run): void {
    if (run.isAbandoned) return
    run.abandon()
    this.#remove(run)
  }

  #remove(run: Run): void {
    this.#unread.delete(run)
    this.#known.delete(run.id)
    this.#leave(run)
    this.#onChanged()
  }

  /** Ends a run that no client has as if it had never been, and another one by its cancellation. */
  refuse(run: Run): void {
    this.end(run, { isAccepted: false })
  }

  /** Cancels a run. `isAccepted: false`: its client was told that the run was not accepted. */
  end(run: Run, { isAccepted }: { isAccepted: boolean }): void {
    if (isAccepted || !run.refuse()) run.cancel('cancelled')
    else this.#remove(run)
  }

  /** Aborts a run without a reader where there is no slot for another (D4.5d): one of the tenant's own when its share is full. */
  #makeRoom(tenant: TenantId): void {
    for (let full = this.#slots.exceeded(tenant, 1); full; full = this.#slots.exceeded(tenant, 1)) {
      const orphan = this.#oldestOrphan(full === 'tenant' ? tenant : undefined)
      if (!orphan) throw full === 'tenant' ? tenantIsFull(this.#slots.usedBy(tenant)) : isFull()
      this.#orphans.delete(orphan)
      this.#givenUp.add(orphan)
      this.#slots.add(orphan.tenant, -1)
      this.refuse(orphan)
    }
  }

  #oldestOrphan(tenant: TenantId | undefined): Run | undefined {
    for (const run of this.#orphans) if (tenant === undefined || run.tenant === tenant) return run
    return undefined
  }

  #onReadersChanged(run: Run): void {
    const isOpen = this.#live.has(run) && !run.isEnded && !this.#givenUp.has(run)
    const isOrphan = isOpen && run.journal.readerCount === 0 && !run.needsNoReader
    if (isOrphan) this.#orphans.add(run)
    else this.#orphans.delete(run)
    this.#restartTime(run)
    if (run.isEnded && run.journal.readerCount === 0) this.#freeMemory()
  }

  async #until(isOver: () => boolean): Promise<void> {
    if (isOver()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const listener = () => {
      if (isOver()) resolve()
    }
    this.#listeners.add(listener)
    await promise
    this.#listeners.delete(listener)
  }

  #onChanged(): void {
    for (const listener of this.#listeners) listener()
  }

  #settle(run: Run): void {
    this.#leave(run)
    if (this.#known.get(run.id) === run) this.#ended.add(run)
    this.#replayable.add(run)
    this.#restartTime(run)
    this.#enforceLimits()
    this.#onChanged()
  }

  #leave(run: Run): void {
    this.#live.delete(run)
    this.#orphans.delete(run)
    if (!this.#givenUp.delete(run)) this.#slots.add(run.tenant, -1)
  }

  /** Starts the time anew: at the start, when the last reader leaves, and at the end. A reader stops it. */
  #restartTime(run: Run): void {
    const isUnread = run.journal.readerCount === 0 && this.#known.get(run.id) === run
    if (isUnread && (run.isEnded || !run.needsNoReader)) this.#unread.add(run)
    else this.#unread.delete(run)
  }

  #forget(run: Run): void {
    this.#unread.delete(run)
    if (this.#known.get(run.id) === run) this.#known.delete(run.id) // A plan that goes on here has a run of the same id.
    this.#ended.delete(run)
    this.#onChanged()
    this.refuse(run)
    void run.ended.then(() => {
      this.#dropFrames(run)
      this.#hooks.onForgotten(run)
    })
  }

  #dropFrames(run: Run): void {
    run.journal.drop()
    this.#replayable.delete(run)
  }

  /** Above the limits, drops the frames of ended runs, or forgets them; never those with a reader. */
  #enforceLimits(): void {
    this.#freeMemory()
    const { maxEnded = MAX_ENDED } = this.#limits
    while (this.#ended.size > maxEnded) {
      const run = this.#ended.next()
      if (!run) break
      this.#forget(run)
    }
  }

  /**
   * The tenant that holds most gives way first: its ended runs, then what its live ones need not keep. One with less than an equal share keeps all,
   * also when the others can free no more because of their readers.
   */
  #freeMemory(): void {
    const weightOf = (tenant: TenantId) => (this.#memory.mustGiveWay(tenant) ? this.#memory.usedBy(tenant) : 0)
    while (this.#memory.isExceeded) {
      const run = this.#replayable.next(weightOf)
      if (!run) break
      this.#dropFrames(run)
    }
    if (this.#memory.isExceeded) for (const run of this.#live) run.journal.shrink()
  }
}

const isAmong = (among: RunFilter['among'], { isEnded, isRecorded }: Run): boolean =>
  among === undefined || (among === 'live' ? !isEnded : isEnded && !isRecorded)

const isFull = () => tooMany('this server has no room for another run; try again in a moment', BUSY_RETRY_SECS)

const tenantIsFull = (count: number) =>
  tooMany(`this tenant has ${count} runs here, which is its share; try again when one has ended`, BUSY_RETRY_SECS)
