import { setTimeout as sleep } from 'node:timers/promises'
import { EventQueue } from '../../agent/engine/event-queue.ts'
import { oneByOne } from '../../kernel/async/batch.ts'
import { hasKind } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { eventsBetween, eventsOf } from './events-of.ts'
import type { PlanEvent, PlanRecord, Plans, PlanTransition } from './port.ts'
import { areStepsOver, hasRunningStep, isRunBy, limitOf } from './states.ts'
import { outlast, StepRuns, type StepRunsDeps } from './step-runs.ts'
import { beginNextSteps, cancelled, endStep, finish, giveBack, interrupt, noteSpent, timedOut } from './transitions.ts'

export type PlanExecutionDeps = StepRunsDeps & {
  plans: Plans
  /** Aborted when the plan must be cancelled. The record has a mark for that, too, which is checked every second. */
  cancelled: AbortSignal
  /** Aborted when no further step may begin. The plan is given back when the running steps have ended. */
  draining: AbortSignal
  /** Aborted when the steps must end now. The plan is given back, or left as it is if this process may not write. */
  stopped: AbortSignal
  /** Whether this process has another epoch now, so that it may never write the plan again. By default it keeps its epoch. */
  isReplaced?(): boolean
  /** How often the record is read. */
  lookEveryMs?: number
}

/** `lost`: another process has the plan, or has ended it, or the reader has left. */
export type PlanOutcome = 'ended' | 'given_back' | 'lost'

/**
 * Executes a plan that this executor has claimed. `plan` is the record that the claim returned (`claim`, `begin` or `takeOver`): steps
 * that it shows as running begin here. Yields all events of the plan from its start on, also those of earlier executors. A step is
 * recorded as running before it starts. While `mayWrite` returns `false`, no step begins and nothing is written. Throws `unavailable` when
 * the store has been away for 15 s. Leaving the iteration aborts the steps and records nothing.
 */
export async function* executePlan(
  tenant: TenantId,
  plan: PlanRecord,
  deps: PlanExecutionDeps,
): AsyncGenerator<PlanEvent, PlanOutcome, undefined> {
  const events = new EventQueue<PlanEvent>(Infinity) // A plan has at most two events for each step.
  const execution = new PlanExecution(tenant, plan, { deps, send: (event) => events.push(event) })
  const ended = execution.run().finally(() => events.close())
  ended.catch(() => {}) // The error is thrown below, unless the reader has left.
  try {
    yield* oneByOne(events)
    return await ended
  } finally {
    execution.leave()
    await ended.catch(() => {})
  }
}

type Halt = 'cancelled' | 'timeout' | 'stopped'
type HaltTransition = (by: { executor: number; at: string }) => PlanTransition

const HALTS: Record<Halt, HaltTransition> = { cancelled, timeout: timedOut, stopped: interrupt }

const LOOK_EVERY_MS = 1_000
const FENCE_EVERY_MS = 200
/** How long aborted steps may take to end before they are recorded as failed. */
const GRACE_MS = 500
/** How long aborted steps may take to end before they are no longer waited for. */
const LEAVE_MS = 5_000

class PlanExecution {
  readonly #tenant: TenantId
  readonly #deps: PlanExecutionDeps
  readonly #send: (event: PlanEvent) => void
  readonly #runs: StepRuns
  /** On the clock of `performance.now()`. */
  readonly #deadline: number
  /** The record that this process has read or written last. */
  #plan: PlanRecord
  #hasNews = false
  #wake = () => {}
  #isLeft = false

  constructor(
    tenant: TenantId,
    plan: PlanRecord,
    { deps, send }: { deps: PlanExecutionDeps; send: (event: PlanEvent) => void },
  ) {
    this.#tenant = tenant
    this.#plan = plan
    this.#deps = deps
    this.#send = send
    this.#runs = new StepRuns(tenant, plan, { deps, onEnd: this.#onNews })
    this.#deadline = performance.now() + timeLeft(plan, deps.now().getTime())
  }

  async run(): Promise<PlanOutcome> {
    const signals = [this.#deps.cancelled, this.#deps.draining, this.#deps.stopped]
    for (const signal of signals) signal.addEventListener('abort', this.#onNews)
    for (const event of eventsOf(this.#plan)) this.#send(event)
    try {
      this.#startSteps()
      if (this.#runs.count > 0) await this.#pause()
      for (;;) {
        const outcome = await this.#advance()
        if (outcome) return outcome
        this.#startSteps()
        await this.#pause()
      }
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', this.#onNews)
      await this.#runs.close(LEAVE_MS)
    }
  }

  /** Records nothing from now on. */
  leave(): void {
    this.#isLeft = true
    this.#onNews()
  }

  readonly #onNews = (): void => {
    this.#hasNews = true
    this.#wake()
  }

  #startSteps(): void {
    if (this.#haltOf(this.#plan)) return
    const running = new Set(this.#plan.states.filter(({ status }) => status === 'running').map(({ id }) => id))
    for (const step of this.#plan.steps) if (running.has(step.id)) this.#runs.start(step)
  }

  /** Records the ended steps and begins the next ones, or ends the plan, in one write. */
  async #advance(): Promise<PlanOutcome | undefined> {
    this.#hasNews = false
    if (this.#isLeft) return 'lost'
    if (this.#haltOf(this.#plan)) await this.#runs.stop(GRACE_MS)
    const next = await this.#write()
    if (!next) return 'lost'
    for (const event of eventsBetween(this.#plan, next)) this.#send(event)
    this.#plan = next
    for (const { id, status } of next.states) if (status !== 'running') this.#runs.ends.delete(id)
    if (next.ended_at !== null) return 'ended'
    return next.status === 'queued' ? 'given_back' : undefined
  }

  /** Returns the record as it is now; `undefined` when this process must write nothing more. Waits while it may not write. */
  async #write(): Promise<PlanRecord | undefined> {
    const { plans, mayWrite, stopped, isReplaced, storeWaitMs } = this.#deps
    const isLook = this.#runs.count > 0 && this.#runs.ends.size === 0 && !this.#haltOf(this.#plan)
    for (;;) {
      let isRefused = false
      const fence = () => {
        isRefused = !mayWrite() || this.#isLeft
        return !isRefused
      }
      try {
        const change = () => plans.change(this.#tenant, this.#plan.plan_id, this.#next, fence)
        const changed = await (isLook ? change() : outlast(change, storeWaitMs))
        if (changed || !isRefused) return changed
      } catch (cause) {
        if (!isLook || !hasKind(cause, 'unavailable')) throw cause
        return this.#plan // The steps continue without the store until one has ended.
      }
      if (this.#isLeft || stopped.aborted || isReplaced?.()) return undefined
      await sleep(FENCE_EVERY_MS)
    }
  }

  readonly #next: PlanTransition = (stored) => {
    const { executor, draining, now } = this.#deps
    const by = { executor, at: now().toISOString(), recordsActions: true }
    if (!isRunBy(stored, executor)) return undefined
    const halt = this.#haltOf(stored)
    const plan = this.#recordEnds(stored, halt)
    if (areStepsOver(plan)) return finish(by)(plan)
    if (halt) return this.#runs.isAborted ? HALTS[halt](by)(plan) : plan
    if (!draining.aborted) return beginNextSteps(by)(plan)
    return hasRunningStep(plan) ? plan : giveBack(by)(plan)
  }

  /** A step that failed after it was aborted is recorded by the transition that follows. */
  #recordEnds(plan: PlanRecord, halt: Halt | undefined): PlanRecord {
    const { executor } = this.#deps
    return [...this.#runs.ends].reduce((next, [id, { spent, ...end }]) => {
      const isCut = halt && end.error !== undefined
      const record = isCut ? noteSpent(id, { executor, spent }) : endStep(id, { executor, spent, ...end })
      return record(next) ?? next
    }, plan)
  }

  #haltOf({ is_cancel_requested: isCancelRequested }: PlanRecord): Halt | undefined {
    const { cancelled: cancel, stopped } = this.#deps
    if (cancel.aborted || isCancelRequested) return 'cancelled'
    if (performance.now() >= this.#deadline) return 'timeout'
    return stopped.aborted ? 'stopped' : undefined
  }

  /** Waits for a step's end, a signal, the deadline, or the next time to read the record. The records of all plans of a process are read together. */
  async #pause(): Promise<void> {
    if (this.#hasNews || this.#haltOf(this.#plan)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const { lookEveryMs = LOOK_EVERY_MS } = this.#deps
    const now = performance.now()
    const lookMs = lookEveryMs - (now % lookEveryMs)
    const timer = setTimeout(resolve, Math.max(0, Math.min(lookMs, this.#deadline - now)))
    await promise
    clearTimeout(timer)
  }
}

/** Milliseconds until the plan's time is over (D7.1). A clock that jumps cannot make it longer. */
const timeLeft = (plan: PlanRecord, nowMs: number): number =>
  Math.max(0, limitOf(plan).atMs - Math.max(nowMs, Date.parse(plan.started_at ?? plan.created_at)))
