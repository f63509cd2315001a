import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../errors.ts'
import type { Consume, ConsumeOptions, Job, JobConsumer, JobHandler, JobKind, JobQueue, JobStore } from './port.ts'

export type MemoryQueueDeps = {
  store: JobStore
  /** Called when a handler or the store has failed. */
  onProblem(message: string, cause: unknown): void
  limits?: Partial<MemoryQueueLimits>
}

export type MemoryQueueLimits = {
  /** Jobs that wait for a handler. */
  maxWaiting: number
  /** Time until a job that could not be counted in the store is tried again. */
  retryMs: number
}

const LIMITS: MemoryQueueLimits = { maxWaiting: 10_000, retryMs: 500 }
/** A job that was handed out this often and is still there has ended its process each time. */
const MAX_STARTS = 2
const FULL_RETRY_SECS = 5

/**
 * The queue of the standalone form. Producer and consumer are one process, so a job is handed on by a function call; the store
 * keeps it until its handler has ended, for the next start. Each kind has at most one consumer.
 */
export class MemoryQueue implements JobQueue {
  readonly #deps: MemoryQueueDeps
  readonly #limits: MemoryQueueLimits
  readonly #consumers = new Map<JobKind, MemoryConsumer>()

  constructor(deps: MemoryQueueDeps) {
    this.#deps = deps
    this.#limits = { ...LIMITS, ...deps.limits }
  }

  /** Throws `unavailable` when too many jobs wait. */
  async add(job: Job): Promise<void> {
    const consumer = this.#consumers.get(job.kind)
    if (consumer && consumer.waitingCount >= this.#limits.maxWaiting) throw full()
    await this.#deps.store.insert(job)
    consumer?.push(job)
  }

  async remove(job: Job): Promise<void> {
    const consumer = this.#consumers.get(job.kind)
    if (!consumer?.isTaken(job)) await this.#deps.store.delete(job)
  }

  /** Hands out the jobs of earlier starts first. */
  readonly consume: Consume = async (kind, handler, options) => {
    const consumer = new MemoryConsumer({ ...this.#deps, ...options, handler, retryMs: this.#limits.retryMs })
    this.#consumers.set(kind, consumer) // Before the list is read, so that a job which is added meanwhile is not missed.
    for (const job of await this.#deps.store.list(kind)) consumer.push(job)
    return consumer
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#consumers.values(), (consumer) => consumer.close()))
  }
}

type ConsumerDeps = MemoryQueueDeps & ConsumeOptions & { handler: JobHandler; retryMs: number }

class MemoryConsumer implements JobConsumer {
  readonly #deps: ConsumerDeps
  readonly #waiting = new Map<string, Job>()
  readonly #taken = new Map<string, Promise<void>>()
  readonly #closing = new AbortController()

  constructor(deps: ConsumerDeps) {
    this.#deps = deps
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  isTaken({ id }: Job): boolean {
    return this.#taken.has(id)
  }

  push(job: Job): void {
    if (this.#taken.has(job.id)) return
    this.#waiting.set(job.id, job)
    this.#takeNext()
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
    const [next] = this.#waiting.values()
    if (!next || this.#closing.signal.aborted || this.#taken.size >= this.#deps.concurrency) return
    this.#waiting.delete(next.id)
    const taken = this.#run(next).finally(() => {
      this.#taken.delete(next.id)
      this.#takeNext()
    })
    this.#taken.set(next.id, taken)
    this.#takeNext()
  }

  /** Handles a job and deletes it. Never rejects. */
  async #run(job: Job): Promise<void> {
    const { store, handler, onGivenUp, onProblem } = this.#deps
    const starts = await this.#countStart(job)
    if (starts === undefined) return
    try {
      await (starts > MAX_STARTS ? onGivenUp(job) : handler(job))
    } catch (cause) {
      onProblem('a job failed', cause)
    }
    await store.delete(job).catch((cause: unknown) => onProblem('a job that is over could not be deleted', cause))
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

const full = () =>
  new AppError('unavailable', 'too many jobs wait to be run; try again later', { retryAfterSecs: FULL_RETRY_SECS })
