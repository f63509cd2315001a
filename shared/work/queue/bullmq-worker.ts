import { type Job as BullJob, Worker, type WorkerOptions } from 'bullmq'
import { type BullData, writeTogether } from './bullmq-redis.ts'
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

/**
 * `first`: BullMQ's own choice is as good, as one job has come to an empty queue. `any`: no job can be passed over, so choosing and taking are sent
 * together.
 */
type Turn = 'first' | 'any' | Exclude<Choice, 'passed_over'>

/** How often the queue is checked while only jobs without a slot here wait. */
const LOOK_EVERY_MS = 25
/** The same while the next job has to wait for memory or for the end of another one. */
const LOOK_LATER_MS = 200
/** Time until the next attempt when Redis has refused to hand out a job. */
const AFTER_FAILURE_MS = 1_000

/** How long the end of a job is held back, to be sent together with taking the next one. Its slot is freed before that. */
const END_WITHIN_MS = 20

/** BullMQ's types leave out that there may be none. */
const NO_JOB = undefined as unknown as BullJob<BullData, void>

/** BullMQ's worker, which takes the job of the tenant whose turn it is, as soon as there is a slot for it. */
export class JobWorker extends Worker<BullData, void> {
  readonly #owner: () => string
  readonly #mayGrow: () => boolean
  readonly #hasTicks: boolean
  readonly #slots: Slots
  readonly #slotOf = new WeakMap<BullJob<BullData>, Slot>()
  #isLeaving = false
  /** Whether no job waited at the last check of the queue. */
  #isDrained = false
  /** The choice that was made right after the last job was taken, with the shares at that moment. */
  #ahead: { choice: Promise<Choice | undefined>; shares: string } | undefined
  /** The ends of jobs that are held back. */
  #ends: { promise: Promise<void>; resolve(): void; timer: NodeJS.Timeout } | undefined
  /** Whether a job has ended, or `close` was called, since the last check of the queue. */
  #hasNews = false
  #wake = () => {}

  /** Takes jobs from `run` on. */
  constructor(kind: JobKind, { bull, limits, owner, mayGrow, handle }: JobWorkerOptions) {
    const process = async (job: BullJob<BullData>, token: string | undefined) => {
      await handle(job, this.#giveWayOf(job), token)
      this.#leaveSlot(job)
      await this.#endsSent()
    }
    super(kind, process, { ...bull, autorun: false })
    this.#owner = owner
    this.#mayGrow = mayGrow
    this.#hasTicks = kind === 'schedule'
    this.#slots = new Slots(limits)
  }

  /** BullMQ's own close does this only after Redis has answered. */
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
    this.#sendEnds()
    return super.close(force)
  }

  /** The owners that have locked jobs. */
  owners(): Promise<string[]> {
    return ownersOf(this)
  }

  /** Hands out the jobs of another owner again without waiting for the ends of their locks. */
  async reclaim(owner: string): Promise<void> {
    if ((await releaseJobs(this, owner)) > 0) await this.getBackend().moveStalledJobsToWait()
  }

  /** BullMQ would take any next job together with the end of this one. */
  override async processJob(job: BullJob<BullData>, token: string): Promise<void> {
    try {
      await super.processJob(job, token, () => false)
    } catch (cause) {
      this.emit('error', cause as Error)
    } finally {
      this.#leaveSlot(job)
    }
  }

  #leaveSlot(job: BullJob<BullData>): void {
    this.#slotOf.get(job)?.leave()
    this.#onNews()
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

  /**
   * BullMQ calls it at the end of each job, too, where it has not looked for the next one: it would take the queue for empty, and wait for its marker, which is one
   * message more for each job.
   */
  protected override async nextJobFromJobData(
    ...[data, id, token]: Parameters<Worker<BullData, void>['nextJobFromJobData']>
  ): Promise<BullJob<BullData, void>> {
    const isEnd = data === undefined && token !== undefined
    return isEnd ? NO_JOB : super.nextJobFromJobData(data, id, token)
  }

  /** Called for each job, one call after the other. */
  protected override async moveToActive(token: string, name?: string): Promise<BullJob<BullData>> {
    for (let turn = await this.#untilReady(); turn; turn = await this.#untilReady()) {
      // BullMQ would look again, which only ticks need: they wait for their times.
      const isEmpty = turn === 'none' && !this.#hasTicks
      const job = isEmpty ? await this.nextJobFromJobData() : await this.#take(token, name, turn)
      this.#isDrained = !job
      if (!job) this.#ahead = undefined // It is not true any more when BullMQ has waited for the next job.
      if (!job) return NO_JOB
      const slot = this.#slots.take(job.data.tenant, this.#mayGrow)
      if (slot) this.#slotOf.set(job, slot)
      if (slot) return job
      await job.moveToWait(token) // Another consumer has taken the chosen one meanwhile, or there is no memory for it.
      if (!this.#slots.hasShare(job.data.tenant)) await this.#pause(LOOK_LATER_MS)
    }
    return NO_JOB
  }

  /** Resolves when a job can be taken or none waits; with `undefined` when no further job must be taken. */
  async #untilReady(): Promise<Turn | undefined> {
    while (!this.#isLeaving) {
      this.#hasNews = false
      const turn = await this.#nextTurn()
      if (turn && turn !== 'passed_over') return this.#isLeaving ? undefined : turn
      await this.#pause(turn ? LOOK_EVERY_MS : LOOK_LATER_MS)
    }
    return undefined
  }

  /** `undefined` while there is no slot. */
  async #nextTurn(): Promise<Turn | 'passed_over' | undefined> {
    const ahead = await this.#chosenAhead()
    if (this.#slots.areAllTaken) return undefined
    if (ahead) return ahead
    const [withShare] = this.#slots.tenantsWithShare()
    if (this.#hasTicks || this.#slots.isFull || withShare !== undefined) return this.#choose()
    return this.#isDrained ? 'first' : 'any'
  }

  #choose(isAfterFirst = false): Promise<Choice> {
    const { isFull } = this.#slots
    return chooseNext(this, { withShare: this.#slots.tenantsWithShare(), isAnyFree: !isFull, isAfterFirst })
  }

  /**
   * Takes a job. What is chosen before, where no job can be passed over, what is chosen for the next one, and the ends of others are sent with it: with them an executor
   * writes 3.5 times to Redis for a flow, without 7.0 (scripts/bench/README.md). A choice for which there may be no slot here is left to the others.
   */
  async #take(token: string, name: string | undefined, turn: Turn): Promise<BullJob<BullData> | undefined> {
    const mayChoose = !this.#hasTicks && (turn === 'first' || this.#slots.hasTwoFree)
    writeTogether(await this.getBackend().client)
    if (turn === 'any') this.#choose().catch(() => {}) // If this fails, the next command fails, too.
    const taken = super.moveToActive(token, name)
    if (mayChoose)
      this.#ahead = { choice: this.#choose(turn === 'first').catch(() => undefined), shares: this.#shares() }
    this.#sendEnds()
    return taken
  }

  /** The choice that was made together with the last job, unless its slot has changed who has a share. That nothing waits does not depend on it. */
  async #chosenAhead(): Promise<Choice | undefined> {
    const ahead = this.#ahead
    this.#ahead = undefined
    const choice = await ahead?.choice
    return choice === 'none' || ahead?.shares === this.#shares() ? choice : undefined
  }

  #shares(): string {
    return [this.#slots.isFull, ...this.#slots.tenantsWithShare()].join(' ')
  }

  /** Resolves when the ends of all ended jobs are sent: together with the request for the next job, or after a short time. */
  #endsSent(): Promise<void> {
    if (this.#isLeaving) return Promise.resolve()
    if (!this.#ends) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#ends = { promise, resolve, timer: setTimeout(() => this.#sendEnds(), END_WITHIN_MS) }
    }
    return this.#ends.promise
  }

  #sendEnds(): void {
    clearTimeout(this.#ends?.timer)
    this.#ends?.resolve()
    this.#ends = undefined
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
