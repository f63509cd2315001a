import { AppError, toAppError } from '../errors.ts'
import type { SchemaProblem } from './port.ts'
import { type Answer, SchemaThread, type Task } from './schema-thread.ts'

/**
 * `taskMs`: for checking a value; with the compilation of its schema, `totalMs`. Both are CPU time: on a machine that gives the thread
 * less of it, a task may take four times as long. `waitMs`: until a thread begins with a task.
 */
export type QueueLimits = { taskMs: number; totalMs: number; waitMs: number; maxWaiting: number; idleMs: number }

type Outcome = { unusable: SchemaProblem; isSlow?: boolean } | { problems: readonly SchemaProblem[] }

/** `isSlow`: the schema did not compile within the limits this time. `tookMs`: the CPU time in the thread. */
export type TaskResult = Outcome & { tookMs: number }

/**
 * A task, and the JSON text of its schema, which is made only when the thread does not hold the schema. `compileMs.left`: what earlier
 * schemas have left of a limit that applies to several together.
 */
export type QueuedTask = Omit<Task, 'schema'> & { compileMs: { limit: number; left: number }; schemaText(): string }

type Job = QueuedTask & {
  isCompiled: boolean
  /** The outcome of a first attempt that used up the memory of its thread. */
  firstOutcome: Outcome | undefined
  /** `undefined` until a thread begins with it. */
  startedAt: number | undefined
  /** The CPU time, since the start, that the task may have. */
  limitMs: number
  meter: CpuMeter | undefined
  resolve(outcome: Outcome): void
  reject(error: AppError): void
  timer: NodeJS.Timeout | undefined
}

/**
 * Runs tasks one after the other in a thread. A second thread is ready to take over when the first one has to be ended. Both
 * start with the first task and end after `idleMs` without one. Only a task that runs or waits keeps the process alive.
 */
export class SchemaQueue {
  readonly #limits: QueueLimits
  readonly #waiting: Job[] = []
  #current: Job | undefined
  #active: SchemaThread | undefined
  #spare: SchemaThread | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  /** Throws `unavailable` when too many tasks wait, and when no thread begins with the task in time. */
  async run(task: QueuedTask): Promise<TaskResult> {
    if (this.#isClosed) throw closed()
    if (this.#waiting.length >= this.#limits.maxWaiting) throw busy()
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    const state = { isCompiled: false, limitMs: 0, firstOutcome: undefined, startedAt: undefined, meter: undefined }
    const job: Job = { ...task, ...state, timer: undefined, resolve, reject }
    job.timer = setTimeout(() => this.#abandon(job), this.#limits.waitMs)
    this.#waiting.push(job)
    this.#next()
    const outcome = await promise
    const wallMs = msSince(job.startedAt)
    return { ...outcome, tookMs: task.value ? wallMs : Math.min(wallMs, (await job.meter?.usedMs()) ?? wallMs) }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#rejectAll(closed())
    await this.#stop()
  }

  #next(): void {
    if (this.#current || this.#isClosed) return
    clearTimeout(this.#idle)
    if (this.#waiting.length === 0) {
      this.#idle = setTimeout(() => void this.#stop(), this.#limits.idleMs).unref()
      return
    }
    this.#active ??= this.#start()
    if (!this.#active.isReady) return
    this.#current = this.#waiting.shift()
    if (this.#current) {
      this.#current.meter = new CpuMeter(this.#active)
      this.#send(this.#active, this.#current)
    }
    this.#spare ??= this.#start()
  }

  #start(): SchemaThread {
    const thread = new SchemaThread({
      onAnswer: (answer) => thread === this.#active && this.#take(answer),
      onFailure: (cause, isMemory) => this.#replace(thread, cause, isMemory),
    })
    return thread
  }

  #send(thread: SchemaThread, job: Job, schema?: string): void {
    const { id, value, compileMs } = job
    job.startedAt ??= performance.now()
    this.#limit(job, compileMs.left)
    thread.send({ id, ...(value && { value }), ...(schema !== undefined && { schema }) })
  }

  #limit(job: Job, limitMs: number): void {
    job.limitMs = limitMs
    this.#restartTimer(job, limitMs - msSince(job.startedAt))
  }

  #restartTimer(job: Job, ms: number): void {
    clearTimeout(job.timer)
    // Answers that came while the event loop was busy are read before the thread is ended.
    const expire = () => setImmediate(() => job.timer === timer && void this.#checkTime(job, timer))
    const timer = setTimeout(expire, Math.max(0, ms))
    job.timer = timer
  }

  /** Gives a task that has had less CPU time than its limit the rest of it, and ends every other. */
  async #checkTime(job: Job, timer: NodeJS.Timeout | undefined): Promise<void> {
    const { limitMs, startedAt, meter } = job
    const usedMs = (await meter?.usedMs()) ?? limitMs
    if (job.timer !== timer) return
    const isStarved = usedMs < STARVED * limitMs && msSince(startedAt) < MAX_STRETCH * limitMs
    if (isStarved) this.#restartTimer(job, limitMs - usedMs)
    else this.#expire(job)
  }

  #take(answer: Answer): void {
    const job = this.#current
    if (answer.type === 'ready') return this.#next()
    if (!job) return undefined
    if (answer.type === 'unusable') return this.#settle(job, { unusable: answer.problem })
    if (answer.type === 'checked') return this.#settle(job, { problems: answer.problems })
    if (answer.type === 'unknown') return this.#active && this.#send(this.#active, job, job.schemaText())
    job.isCompiled = true
    if (!job.value) return this.#settle(job, { problems: [] })
    const { taskMs, totalMs } = this.#limits
    return this.#limit(job, Math.min(msSince(job.startedAt) + taskMs, totalMs))
  }

  #settle(job: Job, outcome: Outcome): void {
    clearTimeout(job.timer)
    this.#current = undefined
    job.timer = undefined
    job.resolve(outcome)
    this.#next()
  }

  #expire(job: Job): void {
    if (job !== this.#current) return
    void this.#active?.end()
    this.#takeOver()
    this.#settle(job, job.firstOutcome ?? { ...tooExpensive(job, this.#timeLimit(job)), isSlow: true })
  }

  #timeLimit({ isCompiled, compileMs: { limit, left } }: Job): string {
    if (isCompiled) return `within ${this.#limits.taskMs} ms`
    return left < limit ? `within ${limit} ms together with the schemas before it` : `within ${limit} ms`
  }

  /** A task that used up the memory has a result. Every other failure is a bug, and rejects all tasks. */
  #replace(thread: SchemaThread, cause: unknown, isMemory: boolean): void {
    if (thread === this.#spare) this.#spare = undefined
    if (thread !== this.#active) return
    this.#takeOver()
    const job = this.#current
    if (isMemory && job) return this.#repeatOrRefuse(job)
    this.#rejectAll(toAppError(cause))
    this.#next()
  }

  /** The memory of a thread holds the validators of other schemas too, so a task is refused only when a new thread fails as well. */
  #repeatOrRefuse(job: Job): void {
    if (job.firstOutcome) return this.#settle(job, job.firstOutcome)
    clearTimeout(job.timer)
    job.firstOutcome = tooExpensive(job, 'in the memory that a check may use')
    job.isCompiled = false
    this.#current = undefined
    this.#waiting.unshift(job)
    return this.#next()
  }

  #takeOver(): void {
    this.#active = this.#spare
    this.#spare = undefined
  }

  #abandon(job: Job): void {
    const at = this.#waiting.indexOf(job)
    if (at >= 0) this.#waiting.splice(at, 1)
    job.reject(busy())
  }

  #rejectAll(error: AppError): void {
    for (const job of this.#current ? [this.#current, ...this.#waiting] : this.#waiting) {
      clearTimeout(job.timer)
      job.reject(error)
    }
    this.#waiting.length = 0
    this.#current = undefined
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#idle)
    const threads = [this.#active, this.#spare]
    this.#active = undefined
    this.#spare = undefined
    await Promise.all(threads.map(async (thread) => thread?.end()))
  }
}

/** The share of its limit below which a task counts as one that did not get the CPU. */
const STARVED = 0.8
/** The longest time of a task, as a multiple of its limit. */
const MAX_STRETCH = 4

/** Measures the CPU time of a thread from now on. */
class CpuMeter {
  readonly #thread: SchemaThread
  readonly #start: Promise<number | undefined>

  constructor(thread: SchemaThread) {
    this.#thread = thread
    this.#start = thread.cpuMs().catch(() => undefined)
  }

  /** `undefined` when the thread has ended. */
  async usedMs(): Promise<number | undefined> {
    const hold = setTimeout(() => {}, MAX_STRETCH * 1_000) // A thread does not keep the process alive until it answers.
    const [start, now] = [await this.#start, await this.#thread.cpuMs().catch(() => undefined)]
    clearTimeout(hold)
    return start === undefined || now === undefined ? undefined : now - start
  }
}

function tooExpensive({ isCompiled }: Job, when: string): Outcome {
  if (isCompiled) return { problems: [{ path: '', message: `cannot be checked ${when}: send a smaller value` }] }
  return { unusable: { path: '', message: `is too expensive: it cannot be compiled ${when}; simplify it` } }
}

const msSince = (start: number | undefined): number => (start === undefined ? 0 : performance.now() - start)

const busy = () =>
  new AppError('unavailable', 'the server is checking too many schemas; try again in a moment', { retryAfterSecs: 1 })

const closed = () => new AppError('unavailable', 'the server is stopping; try again', { retryAfterSecs: 1 })
