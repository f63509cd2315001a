import { AppError, toAppError, tooMany } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { FairOrder } from '../fairness/fair-order.ts'
import { type ShareLimits, TenantShares } from '../fairness/tenant-shares.ts'
import { CpuLimit } from './cpu-limit.ts'
import type { SchemaProblem } from './port.ts'
import { type Place, SchemaPlaces } from './schema-places.ts'
import type { ThreadAnswer, ThreadTask } from './schema-thread.ts'

/**
 * `taskMs` limits checking a value, `totalMs` that together with compiling its schema. Both are CPU time: on a busy machine a task may
 * take ten times as long. `waitMs` limits the wait for a thread. `threads` may work at the same time; one more works for a tenant that
 * has none of them.
 */
export type QueueLimits = {
  threads: number
  taskMs: number
  totalMs: number
  waitMs: number
  waiting: ShareLimits
  idleMs: number
}

type Outcome = { unusable: SchemaProblem; isSlow?: boolean } | { problems: readonly SchemaProblem[] }

/** `isSlow`: the schema did not compile within the limits this time. `tookMs`: the CPU time in the thread. */
export type TaskResult = Outcome & { tookMs: number }

/**
 * A task, and the JSON text of its schema, which is only made if the thread does not have the schema. `compileMs.left`: the rest of a
 * limit for several schemas together.
 */
export type QueuedTask = Omit<ThreadTask, 'schema'> & {
  compileMs: { limit: number; left: number }
  schemaText(): string
}

type Job = {
  id: string
  tenant: TenantId
  task: QueuedTask
  isCompiled: boolean
  /** The outcome of a first attempt that used up the memory of its thread. */
  firstOutcome: Outcome | undefined
  /** Set while the job waits: it fails the job when its time is over. */
  timer: NodeJS.Timeout | undefined
  /** The CPU limit of the latest attempt. */
  limit: CpuLimit | undefined
  resolve(outcome: Outcome): void
  reject(error: AppError): void
}

/**
 * Runs tasks in threads. The tenants take turns. A thread that had to be ended is replaced, and further ones are ready before they are
 * needed. All end after `idleMs` without a task. Only a task that runs or waits keeps the process alive.
 */
export class SchemaQueue {
  readonly #limits: QueueLimits
  readonly #waiting = new FairOrder<{ job: Job; addedAt: number }>()
  readonly #shares: TenantShares
  readonly #running = new Map<Place, Job>()
  readonly #places: SchemaPlaces
  #lastId = 0
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(limits: QueueLimits) {
    this.#limits = limits
    this.#shares = new TenantShares(limits.waiting)
    this.#places = new SchemaPlaces(limits.threads, {
      onReady: () => this.#next(),
      onAnswer: (place, answer) => this.#take(place, answer),
      onFailure: (place, { cause, isMemory }) => this.#replace(place, cause, isMemory),
    })
  }

  /** Throws `rate_limit` and `unavailable` when too many tasks wait, and `unavailable` when no thread begins with the task in time. */
  async run(tenant: TenantId, task: QueuedTask): Promise<TaskResult> {
    if (this.#isClosed) throw closed()
    const exceeded = this.#shares.exceeded(tenant, 1)
    if (exceeded) throw exceeded === 'tenant' ? busyTenant() : busy()
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    const state = { isCompiled: false, firstOutcome: undefined, timer: undefined, limit: undefined }
    const job: Job = { id: `${++this.#lastId}`, tenant, task, ...state, resolve, reject }
    job.timer = setTimeout(() => this.#abandon(job), this.#limits.waitMs)
    this.#wait(job)
    this.#next()
    const outcome = await promise
    const wallMs = job.limit?.elapsedMs ?? 0
    return { ...outcome, tookMs: task.value ? wallMs : Math.min(wallMs, (await job.limit?.usedMs()) ?? wallMs) }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#rejectAll(closed())
    await this.#stop()
  }

  #wait(job: Job, options?: { isAgain: boolean }): void {
    this.#waiting.push({ job, addedAt: Date.now() }, options)
    this.#shares.add(job.tenant, 1)
  }

  #leave(job: Job): void {
    clearTimeout(job.timer)
    this.#waiting.remove(job.id)
    this.#shares.add(job.tenant, -1)
  }

  #next(): void {
    if (this.#isClosed) return
    clearTimeout(this.#idle)
    if (this.#waiting.size === 0 && this.#running.size === 0) {
      this.#idle = setTimeout(() => void this.#stop(), this.#limits.idleMs).unref()
      return
    }
    for (let place = this.#startNext(); place; place = this.#startNext());
    this.#places.startMore()
  }

  /** Starts the next task among those of the tenants that may have a place. */
  #startNext(): Place | undefined {
    const next = this.#waiting.next((tenant) => this.#places.mayTake(tenant))
    const place = next && this.#places.take(next.job.tenant)
    if (!place) return undefined
    const { job } = next
    this.#waiting.take(next)
    this.#leave(job)
    this.#running.set(place, job)
    job.limit = new CpuLimit(place.thread, { isLong: !job.task.value, onExpired: () => this.#expire(place) })
    this.#send(place, job)
    return place
  }

  #send({ thread }: Place, { task: { id, value, compileMs }, limit }: Job, schema?: string): void {
    limit?.set(compileMs.left)
    thread.send({ id, ...(value && { value }), ...(schema !== undefined && { schema }) })
  }

  #take(place: Place, answer: ThreadAnswer): void {
    const job = this.#running.get(place)
    if (!job) return
    if (answer.type === 'unusable') return this.#settle(place, { unusable: answer.problem })
    if (answer.type === 'checked') return this.#settle(place, { problems: answer.problems })
    if (answer.type === 'unknown') return this.#send(place, job, job.task.schemaText())
    job.isCompiled = true
    if (!job.task.value) return this.#settle(place, { problems: [] })
    const { taskMs, totalMs } = this.#limits
    job.limit?.set(Math.min(job.limit.elapsedMs + taskMs, totalMs))
  }

  #settle(place: Place, outcome: Outcome): void {
    this.#places.free(place)
    this.#end(place)?.resolve(outcome)
    this.#next()
  }

  /** Stops the clock of the task that has the place. */
  #end(place: Place): Job | undefined {
    const job = this.#running.get(place)
    this.#running.delete(place)
    job?.limit?.stop()
    return job
  }

  #expire(place: Place): void {
    const job = this.#end(place)
    if (!job) return
    this.#places.replaceThread(place)
    job.resolve(job.firstOutcome ?? { ...tooExpensive(job, this.#timeLimit(job)), isSlow: true })
    this.#next()
  }

  #timeLimit({ isCompiled, task: { compileMs } }: Job): string {
    const { limit, left } = compileMs
    if (isCompiled) return `within ${this.#limits.taskMs} ms`
    return left < limit ? `within ${limit} ms together with the schemas before it` : `within ${limit} ms`
  }

  /** A task that has used up the memory gets a result. Every other failure is a bug: if no task has failed, all waiting tasks are rejected. */
  #replace(place: Place, cause: unknown, isMemory: boolean): void {
    const job = this.#end(place)
    if (job) this.#places.replaceThread(place)
    else this.#places.remove(place)
    if (isMemory && job) this.#repeatOrRefuse(job)
    else if (job) job.reject(toAppError(cause))
    else this.#rejectAll(toAppError(cause))
    this.#next()
  }

  /** The memory of a thread holds the validators of other schemas too, so a task is refused only when a new thread fails as well. */
  #repeatOrRefuse(job: Job): void {
    if (job.firstOutcome) return job.resolve(job.firstOutcome)
    job.firstOutcome = tooExpensive(job, 'in the memory that a check may use')
    job.isCompiled = false
    this.#wait(job, { isAgain: true })
  }

  #abandon(job: Job): void {
    this.#leave(job)
    job.reject(busy())
  }

  #rejectAll(error: AppError): void {
    for (const place of [...this.#running.keys()]) this.#end(place)?.reject(error)
    for (let next = this.#waiting.next(); next; next = this.#waiting.next()) {
      this.#leave(next.job)
      next.job.reject(error)
    }
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#places.endAll()
  }
}

function tooExpensive({ isCompiled }: Job, when: string): Outcome {
  if (isCompiled) return { problems: [{ path: '', message: `cannot be checked ${when}: send a smaller value` }] }
  return { unusable: { path: '', message: `is too expensive: it cannot be compiled ${when}; simplify it` } }
}

const RETRY_SECS = 1

const busy = () =>
  new AppError('unavailable', 'the server is checking too many schemas; try again in a moment', {
    retryAfterSecs: RETRY_SECS,
  })

const busyTenant = () =>
  tooMany(
    'this tenant has its share of the values and schemas that wait to be checked here; try again when some of its flows have been checked',
    RETRY_SECS,
  )

const closed = () => new AppError('unavailable', 'the server is stopping; try again', { retryAfterSecs: RETRY_SECS })
