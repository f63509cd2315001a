import { setTimeout as sleep } from 'node:timers/promises'
import { linked } from '../trace.ts'
import { failedReason, HANDLER_FAILED } from './failed-reason.ts'
import { FairOrder } from './fair-order.ts'
import type { ConsumeOptions, FailedJob, Job, JobConsumer, JobCounts, JobHandler, JobStore, StoredJob } from './port.ts'

export type MemoryConsumerDeps = ConsumeOptions & {
  store: JobStore
  handler: JobHandler
  /** Time until a job that could not be counted in the store is tried again. */
  retryMs: number
  onProblem(message: string, cause: unknown): void
}

/** A job that was handed out this often and is still there has ended its process each time. */
const MAX_STARTS = 2
/** The newest failed jobs that are listed. */
const MAX_FAILURES = 1_000

/** Hands the jobs of one kind to their handler. */
export class MemoryConsumer implements JobConsumer {
  readonly #deps: MemoryConsumerDeps
  readonly #waiting = new FairOrder()
  readonly #taken = new Map<string, Promise<void>>()
  readonly #failures: FailedJob[] = []
  readonly #closing = new AbortController()

  constructor(deps: MemoryConsumerDeps) {
    this.#deps = deps
  }

  get waitingCount(): number {
    return this.#waiting.size
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
    this.#waiting.clear() // The store has them.
  }

  #takeNext(): void {
    while (!this.#closing.signal.aborted && this.#taken.size < this.#deps.concurrency) {
      const next = this.#waiting.take()
      if (!next) return
      this.#taken.set(next.job.id, this.#finish(next))
    }
  }

  /** Never rejects. */
  async #finish(taken: StoredJob): Promise<void> {
    const isAgain = await this.#run(taken)
    this.#taken.delete(taken.job.id)
    if (isAgain) this.push(taken)
    this.#takeNext()
  }

  /** Handles a job, and deletes it unless it waits again. Returns whether it does. Never rejects. */
  async #run({ job }: StoredJob): Promise<boolean> {
    const { store, onProblem } = this.#deps
    const starts = await this.#countStart(job)
    if (starts === undefined) return false
    const isAgain = await this.#handle(job, starts)
    await (isAgain ? store.resetStarts(job) : store.delete(job)).catch((cause: unknown) =>
      onProblem('the end of a job could not be stored', cause),
    )
    return isAgain
  }

  async #handle(job: Job, starts: number): Promise<boolean> {
    const { handler, onGivenUp, onProblem } = this.#deps
    try {
      const end = await linked(job.trace, () => (starts > MAX_STARTS ? onGivenUp(job) : handler(job)))
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
    while (!signal.aborted) {
      try {
        return await store.countStart(job)
      } catch (cause) {
        onProblem('a job could not be taken', cause)
        await sleep(retryMs, undefined, { signal }).catch(() => {})
      }
    }
    return undefined
  }
}
