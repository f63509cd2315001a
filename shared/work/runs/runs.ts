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
  /** How long a run continues without a reader, and how long an ended run stays known (D4.5b). */
  resumeMs: number
  maxJournalBytes: number
  /** How many ended runs are kept; 20,000 by default. */
  maxEnded?: number
  journal?: JournalLimits
}

export type RunsHooks = RunHooks & {
  /** Called after a run was forgotten, so that its other data can be removed too. */
  onForgotten(run: Run): void
}

const MAX_ENDED = 20_000
/** How many ended runs of a tenant are kept although their records have everything about them. */
const MAX_RECENT = 1_000
/** How often a process that shuts down checks whether a run still needs it. */
const LOOK_MS = 20
const BUSY_RETRY_SECS = 1

/** The runs of this process: live runs, and ended runs for as long as their readers may come back (D4.5b). */
export class Runs {
  readonly #limits: RunsLimits
  readonly #hooks: RunsHooks
  readonly #memory: JournalMemory
  readonly #known = new Map<string, Run>()
  /** The runs without a reader, which are forgotten after a time. */
  readonly #unread: ExpiryQueue<Run>
  readonly #live = new Set<Run>()
  /** The live runs, except those that were aborted to make room for others. */
  readonly #slots: TenantShares
  readonly #givenUp = new Set<Run>()
  /** Live runs whose last reader has left, in the order in which they left. */
  readonly #orphans = new Set<Run>()
  readonly #ended = new EndedRuns()
  /** The ended runs whose frames are still in memory. */
  readonly #replayable = new EndedRuns()
  /** The newest ended runs of each tenant. */
  readonly #recent = new EndedRuns()
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

  /** Registers a new run. Throws `rate_limit` when the limit of live runs, in total or of the tenant, is reached and each of them has a reader. */
  open(identity: RunIdentity): Run {
    this.#makeRoom(identity.tenant)
    return this.adopt(identity)
  }

  /** Registers a run that another process has accepted already. It takes a slot even if none is free. */
  adopt(identity: RunIdentity): Run {
    this.#slots.add(identity.tenant, 1)
    const budget = this.#memory.budgetOf(identity.tenant)
    const journal = new Journal(budget, this.#limits.journal, () => this.#onReadersChanged(run))
    const run = new Run(identity, { journal, loop: eventLoop }, this.#hooks)
    this.#known.set(run.id, run)
    this.#live.add(run)
    this.#restartTime(run)
    run.whenEnded(() => run.isAbandoned || this.#settle(run))
    return run
  }

  /** Counts the known runs by status. */
  countByStatus(): Record<RunStatus, number> {
    const counts = { running: 0, waiting: 0, done: 0, failed: 0, cancelled: 0 }
    for (const { status } of this.#known.values()) counts[status]++
    return counts
  }

  /** Throws `not_found` for an unknown run and for a run of another tenant. */
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
   * Resolves when no run is live. Runs that are still live after `graceMs` end with `worker_draining`, except those for which `isLeaving`
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
   * Resolves when no run needs this process any more, or `signal` is aborted: each run is forgotten, or has no reader and later readers find
   * its events in its record.
   */
  async served(signal: AbortSignal): Promise<void> {
    const isNeeded = (run: Run) => !run.isReplayable || run.journal.readerCount > 0
    while (!signal.aborted && [...this.#known.values()].some(isNeeded)) await sleep(LOOK_MS)
  }

  /** Forgets a run that another process has adopted. The streams of its readers end with a gap. */
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

  /** If no client has the run, it ends without a record; otherwise it is cancelled. */
  refuse(run: Run): void {
    this.end(run, { isAccepted: false })
  }

  /** Cancels a run. `isAccepted: false`: the client got the answer that the run was not accepted. */
  end(run: Run, { isAccepted }: { isAccepted: boolean }): void {
    if (isAccepted || !run.refuse()) run.cancel('cancelled')
    else this.#remove(run)
  }

  /** Aborts a run without a reader if no slot is free (D4.5d): a run of the same tenant if the tenant's share is used up. */
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
    if (this.#known.get(run.id) === run) {
      this.#ended.add(run)
      this.#recent.add(run)
    }
    this.#replayable.add(run)
    this.#restartTime(run)
    this.#forgetRecorded(run.tenant)
    this.#enforceLimits()
    this.#onChanged()
  }

  #leave(run: Run): void {
    this.#live.delete(run)
    this.#orphans.delete(run)
    if (!this.#givenUp.delete(run)) this.#slots.add(run.tenant, -1)
  }

  /** Restarts the timeout of a run: at its start, when the last reader leaves, and at its end. A reader stops the timeout. */
  #restartTime(run: Run): void {
    const isUnread = run.journal.readerCount === 0 && this.#known.get(run.id) === run
    if (isUnread && (run.isEnded || !run.needsNoReader)) this.#unread.add(run)
    else this.#unread.delete(run)
  }

  #forget(run: Run): void {
    this.#unread.delete(run)
    if (this.#known.get(run.id) === run) this.#known.delete(run.id) // If this process continues a plan, another run has the same id.
    this.#ended.delete(run)
    this.#recent.delete(run)
    this.#onChanged()
    this.refuse(run)
    run.whenEnded(() => {
      this.#dropFrames(run)
      this.#hooks.onForgotten(run)
    })
  }

  /** An ended run takes 6 KB, so that thousands of short runs a second would need most of the memory of a process. */
  #forgetRecorded(tenant: TenantId): void {
    const run = this.#recent.takeAbove(MAX_RECENT, tenant)
    if (run?.isRecordedWhole && run.journal.readerCount === 0) this.#forget(run)
  }

  #dropFrames(run: Run): void {
    run.journal.drop()
    this.#replayable.delete(run)
  }

  /** Above the limits, drops the frames of ended runs, or forgets the runs; never those with a reader. */
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
   * The tenant that uses most memory loses data first: its ended runs, then the frames that its live runs need not keep. A tenant with less than an
   * equal share keeps everything, even if the others can free no more because of their readers.
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
