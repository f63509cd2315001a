import { type Job as BullJob, Worker, type WorkerOptions } from 'bullmq'
import type { BullData } from './bullmq-redis.ts'
import { type Choice, chooseNext, ownersOf, releaseJobs } from './bullmq-scripts.ts'
import type { JobKind } from './port.ts'
import { type Slot, type SlotLimits, Slots } from './slots.ts'

export type JobWorkerOptions = {
  bull: WorkerOptions
  limits: SlotLimits
  /** The first part of the tokens that lock the jobs of this process. */
  owner(): string
  /** Whether there is memory for an extra slot. */
  mayGrow(): boolean
  /** Handles a job; `token` is BullMQ's. */
  handle(job: BullJob<BullData>, giveWay: AbortSignal, token: string | undefined): Promise<void>
}

/** How often the queue is looked at while only jobs wait that have no slot here. */
const LOOK_EVERY_MS = 25
/** The same while the next job has to wait for memory or for the end of another one. */
const LOOK_LATER_MS = 200
/** Time until the next attempt when Redis has refused to hand out a job. */
const AFTER_FAILURE_MS = 1_000

/** BullMQ's types leave out that there may be none. */
const NO_JOB = undefined as unknown as BullJob<BullData>

/** BullMQ's worker, which takes the job of the tenant whose turn it is, as soon as there is a slot for it. */
export class JobWorker extends Worker<BullData, void> {
  readonly #owner: () => string
  readonly #mayGrow: () => boolean
  readonly #hasTicks: boolean
  readonly #slots: Slots
  readonly #slotOf = new WeakMap<BullJob<BullData>, Slot>()
  #isLeaving = false
  /** Whether no job waited when the queue was looked at last. */
  #isDrained = false
  /** The place of the job that was taken last without being chosen. */
  #taken: number | undefined
  /** Whether a job has ended, or `close` was called, since the queue was looked at. */
  #hasNews = false
  #wake = () => {}

  /** Takes jobs from `run` on. */
  constructor(kind: JobKind, { bull, limits, owner, mayGrow, handle }: JobWorkerOptions) {
    const process = (job: BullJob<BullData>, token: string | undefined) => handle(job, this.#giveWayOf(job), token)
    super(kind, process, { ...bull, autorun: false })
    this.#owner = owner
    this.#mayGrow = mayGrow
    this.#hasTicks = kind === 'schedule'
    this.#slots = new Slots(limits)
  }

  /** BullMQ's own close comes to this only when Redis has answered. */
  readonly stopRenewing = (): Promise<void> => this.lockManager.close()

  /**
   * Takes jobs until `close`, and resolves when they have ended. BullMQ's own loop would begin the jobs that it has taken only when it
   * knows whether there is a further one, and has a fixed number of slots.
   */
  override async run(): Promise<void> {
    await this.startStalledCheckTimer()
    this.lockManager.start()
    this.mainLoopRunning = this.#takeJobs()
    await this.mainLoopRunning
  }

  override close(force?: boolean): Promise<void> {
    this.#isLeaving = true
    this.#onNews()
    return super.close(force)
  }

  /** The owners that have locked jobs. */
  owners(): Promise<string[]> {
    return ownersOf(this)
  }

  /** Hands the jobs of another owner out again, whose locks would end later. */
  async reclaim(owner: string): Promise<void> {
    if ((await releaseJobs(this, owner)) > 0) await this.getBackend().moveStalledJobsToWait()
  }

  /** BullMQ would take the next job together with the end of this one, whichever it is. */
  override async processJob(job: BullJob<BullData>, token: string): Promise<void> {
    try {
      await super.processJob(job, token, () => false)
    } catch (cause) {
      this.emit('error', cause as Error)
    } finally {
      this.#slotOf.get(job)?.leave()
      this.#onNews()
    }
  }

  async #takeJobs(): Promise<void> {
    const processing = new Set<Promise<void>>()
    for (let number = 0; !this.#isLeaving; number++) {
      const token = `${this.#owner()}:${this.id}:${number}`
      const job = await this.getNextJob(token).catch(this.#onFailure)
      if (!job) continue
      const processed = this.processJob(job, token).finally(() => processing.delete(processed))
      processing.add(processed)
    }
    await Promise.all(processing)
  }

  readonly #onFailure = async (cause: Error): Promise<undefined> => {
    if (this.#isLeaving) return
    this.emit('error', cause)
    this.#hasNews = false
    await this.#pause(AFTER_FAILURE_MS)
  }

  /** Called for each job, one call after the other. */
  protected override async moveToActive(token: string, name?: string): Promise<BullJob<BullData>> {
    const isFirst = this.#isFirst()
    for (let choice = isFirst ? 'first' : await this.#untilReady(); choice; choice = await this.#untilReady()) {
      // BullMQ would look again, which only ticks need: they wait for their times.
      const isEmpty = choice === 'none' && !this.#hasTicks
      const job = isEmpty ? await this.nextJobFromJobData() : await super.moveToActive(token, name)
      this.#isDrained = !job
      if (!job) return NO_JOB
      if (choice === 'first') this.#taken = job.opts.priority
      const slot = this.#slots.take(job.data.tenant, this.#mayGrow)
      if (slot) this.#slotOf.set(job, slot)
      if (slot) return job
      await job.moveToWait(token) // Another consumer has taken the chosen one meanwhile, or there is no memory for it.
      if (!this.#slots.hasShare(job.data.tenant)) await this.#pause(LOOK_LATER_MS)
    }
    return NO_JOB
  }

  /** Resolves when a job can be taken or none waits; with `undefined` when no further one is to be taken. */
  async #untilReady(): Promise<'ready' | 'none' | undefined> {
    while (!this.#isLeaving) {
      this.#hasNews = false
      const choice = this.#slots.areAllTaken ? undefined : await this.#choose()
      if (choice === 'ready' || choice === 'none') return this.#isLeaving ? undefined : choice
      await this.#pause(choice ? LOOK_EVERY_MS : LOOK_LATER_MS)
    }
    return undefined
  }

  /** Whether BullMQ's own choice is as good: one job has come to an empty queue, and is passed over in no case. */
  #isFirst(): boolean {
    const [withShare] = this.#slots.tenantsWithShare()
    return this.#isDrained && !this.#isLeaving && !this.#hasTicks && !this.#slots.isFull && withShare === undefined
  }

  #choose(): Promise<Choice> {
    const taken = this.#taken
    this.#taken = undefined
    return chooseNext(this, { withShare: this.#slots.tenantsWithShare(), isAnyFree: !this.#slots.isFull, taken })
  }

  #giveWayOf(job: BullJob<BullData>): AbortSignal {
    return this.#slotOf.get(job)?.giveWay ?? new AbortController().signal
  }

  readonly #onNews = (): void => {
    this.#hasNews = true
    this.#wake()
  }

  async #pause(ms: number): Promise<void> {
    if (this.#hasNews) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = setTimeout(resolve, ms)
    await promise
    clearTimeout(timer)
  }
}
