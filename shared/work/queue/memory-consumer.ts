import { retryUntil } from '../../kernel/async/retry.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { linked } from '../../kernel/trace.ts'
import { FairOrder } from '../../platform/fairness/fair-order.ts'
import {
  type ConsumeOptions,
  type FailedJob,
  failedReason,
  HANDLER_FAILED,
  type Job,
  type JobConsumer,
  type JobCounts,
  type JobHandler,
  type JobStore,
  type StoredJob,
} from './port.ts'
import { type Slot, Slots } from './slots.ts'

export type MemoryConsumerDeps = ConsumeOptions & {
  store: JobStore
  handler: JobHandler
  /** Time until a job that could not be counted in the store is tried again. */
  retryMs: number
  onProblem(message: string, cause: unknown): void
}

/** A job that was handed out this often and still exists has ended its process each time. */
const MAX_STARTS = 2
/** The newest failed jobs that are listed. */
const MAX_FAILURES = 1_000
/** How long to wait before checking again whether there is memory for an extra slot. */
const LOOK_EVERY_MS = 200

/** Hands the jobs of one kind to their handler. */
export class MemoryConsumer implements JobConsumer {
  readonly #deps: MemoryConsumerDeps
  readonly #slots: Slots
  readonly #waiting = new FairOrder<StoredJob>()
  readonly #taken = new Map<string, Promise<void>>()
  readonly #failures: FailedJob[] = []
  readonly #closing = new AbortController()
  #look: NodeJS.Timeout | undefined

  constructor(deps: MemoryConsumerDeps) {
    this.#deps = deps
    this.#slots = new Slots({ max: deps.concurrency, maxPerTenant: deps.perTenant ?? deps.concurrency })
  }

  /** Whether no further job of the tenant may wait: of `max` jobs, a tenant may have as large a share as of the slots. */
  isFullFor(tenant: TenantId, max: number): boolean {
    const { concurrency, perTenant = concurrency } = this.#deps
    return this.#waiting.size >= max || this.#waiting.countOf(tenant) * concurrency >= max * perTenant
  }

  /** Newest first. */
  get failures(): FailedJob[] {
    return this.#failures.toReversed()
  }

  counts(): JobCounts {
    const { oldestAt } = this.#waiting
    return {
      waiting: this.#waiting.size,
      active: this.#taken.size,
      failed: this.#failures.length,
      oldestWaitingMs: oldestAt === undefined ? 0 : Math.max(0, Date.now() - oldestAt),
    }
  }

  /** Whether the job waits or is handled. */
  has(id: string): boolean {
    return this.#taken.has(id) || this.#waiting.has(id)
  }

  push(stored: StoredJob): void {
    if (this.#taken.has(stored.job.id) || this.#closing.signal.aborted) return
    this.#waiting.push(stored)
    this.#takeNext()
  }

  /** Returns `false` when the job was taken. */
  remove({ id }: Job): boolean {
    if (this.#taken.has(id)) return false
    this.#waiting.remove(id)
    return true
  }

  async drain(): Promise<void> {
    await this.close()
    await Promise.all(this.#taken.values())
  }

  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#look)
    this.#waiting.clear() // The store still has these jobs.
  }

  /** No other process has jobs. */
  async owners(): Promise<string[]> {
    return []
  }

  async reclaim(): Promise<void> {}

  #takeNext(): void {
    clearTimeout(this.#look)
    while (!this.#closing.signal.aborted) {
      const next = this.#waiting.next((tenant) => !this.#slots.hasShare(tenant))
      if (!next) return
      const slot = this.#slots.take(next.job.tenant, this.#mayGrow)
      if (!slot) return this.#lookAgain(next.job.tenant)
      this.#waiting.take(next)
      this.#taken.set(next.job.id, this.#finish(next, slot))
    }
  }

  readonly #mayGrow = (): boolean => this.#deps.mayGrow?.() ?? true

  /** No event reports free memory, so a timer checks for it. Everything else that a job waits for comes with the end of another job. */
  #lookAgain(tenant: TenantId): void {
    if (this.#slots.areAllTaken || this.#slots.hasShare(tenant)) return
    this.#look = setTimeout(() => this.#takeNext(), LOOK_EVERY_MS)
  }

  /** Never rejects. */
  async #finish(taken: StoredJob, slot: Slot): Promise<void> {
    const isAgain = await this.#run(taken, slot)
    this.#taken.delete(taken.job.id)
    slot.leave()
    if (isAgain && !this.#closing.signal.aborted) this.#waiting.push(taken, { isAgain })
    this.#takeNext()
  }

  /** Handles a job, and deletes it unless it waits again. Returns whether it does. Never rejects. */
  async #run({ job }: StoredJob, slot: Slot): Promise<boolean> {
    const { store, onProblem } = this.#deps
    const starts = await this.#countStart(job)
    if (starts === undefined) return false
    const isAgain = await this.#handle(job, starts, slot)
    await (isAgain ? store.resetStarts(job) : store.delete(job)).catch((cause: unknown) =>
      onProblem('the end of a job could not be stored', cause),
    )
    return isAgain
  }

  async #handle(job: Job, starts: number, { giveWay }: Slot): Promise<boolean> {
    const { handler, onGivenUp, onProblem } = this.#deps
    try {
      const end = await linked(job.trace, () => (starts > MAX_STARTS ? onGivenUp : handler)(job, giveWay))
      if (end && 'failed' in end) this.#listFailure(job, failedReason(end.failed))
      return end !== undefined && 'again' in end
    } catch (cause) {
      onProblem('a job failed', cause)
      this.#listFailure(job, HANDLER_FAILED)
      return false
    }
  }

  #listFailure({ id, tenant }: Job, reason: string): void {
    this.#failures.push({ id, tenant, reason, at: new Date().toISOString() })
    if (this.#failures.length > MAX_FAILURES) this.#failures.shift()
  }

  /** Repeats the count until the store answers. Returns `undefined` when the job was removed, or this consumer was closed. */
  async #countStart(job: Job): Promise<number | undefined> {
    const { store, onProblem, retryMs } = this.#deps
    const { signal } = this.#closing
    const mayPass = (cause: unknown) => {
      onProblem('a job could not be taken', cause)
      return true
    }
    return retryUntil(() => store.countStart(job), { pauses: retryMs, mayPass, signal }).catch(() => undefined)
  }
}
