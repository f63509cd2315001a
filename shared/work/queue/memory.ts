import { AppError } from '../../kernel/errors.ts'
import { currentLink } from '../../kernel/trace.ts'
import { MemoryConsumer } from './memory-consumer.ts'
import type { Consume, FailedJob, Job, JobCounts, JobKind, JobQueue, JobStore, QueueMonitor } from './port.ts'

export type MemoryQueueDeps = {
  store: JobStore
  /** Called when a handler or the store has failed. */
  onProblem(message: string, cause: unknown): void
  limits?: Partial<MemoryQueueLimits>
}

export type MemoryQueueLimits = {
  /** The most waiting jobs of one kind. A tenant's share of them is the same as of the slots. */
  maxWaiting: number
  /** Time until a job that could not be counted in the store is tried again. */
  retryMs: number
}

const LIMITS: MemoryQueueLimits = { maxWaiting: 20_000, retryMs: 500 }
const FULL_RETRY_SECS = 5

/**
 * The queue of the standalone form. Producer and consumer are one process, so a job is passed on by a function call; the store
 * keeps it until its handler has ended, for the next start. Each kind has at most one consumer. The list of failed jobs is empty
 * after each start.
 */
export class MemoryQueue implements JobQueue, QueueMonitor {
  readonly #deps: MemoryQueueDeps
  readonly #limits: MemoryQueueLimits
  readonly #consumers = new Map<JobKind, MemoryConsumer>()

  constructor(deps: MemoryQueueDeps) {
    this.#deps = deps
    this.#limits = { ...LIMITS, ...deps.limits }
  }

  /** Throws `unavailable` when too many jobs wait, in total or of the tenant. */
  async add(plain: Job): Promise<void> {
    const trace = currentLink()
    const job = trace ? { ...plain, trace } : plain
    const consumer = this.#consumers.get(job.kind)
    if (consumer?.isFullFor(job.tenant, this.#limits.maxWaiting)) throw full()
    await this.#deps.store.insert(job)
    consumer?.push({ job, addedAt: Date.now() })
  }

  async remove(job: Job): Promise<void> {
    const isFree = this.#consumers.get(job.kind)?.remove(job) ?? true
    if (isFree) await this.#deps.store.delete(job)
  }

  async missing(kind: JobKind, ids: readonly string[]): Promise<string[]> {
    const consumer = this.#consumers.get(kind)
    if (consumer) return ids.filter((id) => !consumer.has(id))
    const stored = new Set((await this.#deps.store.list(kind)).map(({ job }) => job.id))
    return ids.filter((id) => !stored.has(id))
  }

  async counts(kind: JobKind): Promise<JobCounts> {
    const consumer = this.#consumers.get(kind)
    if (consumer) return consumer.counts()
    const jobs = await this.#deps.store.list(kind)
    const oldestWaitingMs = Math.max(0, Date.now() - (jobs[0]?.addedAt ?? Date.now()))
    return { waiting: jobs.length, active: 0, failed: 0, oldestWaitingMs }
  }

  /** The jobs that failed since the start, newest first, at most 1,000. */
  failures(kind: JobKind): FailedJob[] {
    return this.#consumers.get(kind)?.failures ?? []
  }

  /** Hands out the jobs of earlier starts first. */
  readonly consume: Consume = async (kind, handler, options) => {
    const { store, onProblem } = this.#deps
    const consumer = new MemoryConsumer({ ...options, store, onProblem, handler, retryMs: this.#limits.retryMs })
    this.#consumers.set(kind, consumer) // Before the list is read, so that a job which is added meanwhile is not missed.
    for (const stored of await store.list(kind)) consumer.push(stored)
    return consumer
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#consumers.values(), (consumer) => consumer.close()))
  }
}

const full = () =>
  new AppError('unavailable', 'too many jobs wait to be run; try again later', { retryAfterSecs: FULL_RETRY_SECS })
