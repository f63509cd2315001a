import { setTimeout as sleep } from 'node:timers/promises'
import { once } from '../../kernel/async/once.ts'
import { retryUntil } from '../../kernel/async/retry.ts'
import { AppError, hasKind, toAppError } from '../../kernel/errors.ts'
import type { PlanStep } from '../../kernel/plan-step.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { PlanRecord, Plans, Spent } from './port.ts'
import { isRunBy, runOfStep } from './states.ts'
import { readOutputs, storedOutput } from './step-output.ts'
import { noteAction } from './transitions.ts'

/** `spent` is left out when the step has called no model. */
export type StepResult = ({ output: string } | { error: string }) & { spent?: Spent }

/** One attempt of a step: each attempt has its own run. */
export type StepRun = PlanStep & {
  run_id: string
  /**
   * Await it before each effect. The first call records that the step acts; it waits as long as this process may not write. Throws
   * `unavailable` when it could not be recorded, or the step is aborted: then there must be no effect.
   */
  beforeAction(): Promise<void>
}

/** Runs one step. `outputs` are those of its dependencies. After `signal` is aborted, its result may be ignored. */
export type RunStep = (step: StepRun, outputs: ReadonlyMap<string, string>, signal: AbortSignal) => Promise<StepResult>

export type StepRunsDeps = {
  plans: Pick<Plans, 'get' | 'change' | 'isRecordedWithEnd' | 'saveOutput' | 'outputs'>
  /** The epoch under which the plan was claimed. */
  executor: number
  /** Whether this process may act and write under that epoch now. */
  mayWrite(): boolean
  runStep: RunStep
  now(): Date
  /** How long an outage of the store may last. */
  storeWaitMs?: number
}

/** `at` is in ISO 8601. `output` is set if it must be recorded with the end. */
export type StepEnd = { at: string; error?: string; output?: string; spent?: Spent }

const LOOK_EVERY_MS = 200
/** The most characters of a plan's outputs that are kept in memory for dependent steps; others are read from the store. */
const MAX_KEPT_CHARS = 1024 * 1024

/** The steps of one plan that run in this process. Each starts at most once. */
export class StepRuns {
  /** The steps that have ended here but are not recorded yet. Outputs that are too long to be recorded with them are stored separately. */
  readonly ends = new Map<string, StepEnd>()
  readonly #tenant: TenantId
  readonly #plan: PlanRecord
  readonly #deps: StepRunsDeps
  readonly #onEnd: () => void
  readonly #abort = new AbortController()
  readonly #started = new Set<string>()
  readonly #running = new Set<Promise<void>>()
  /** Outputs that are stored, or recorded with the ends of their steps. While this process has the plan, no other process replaces them. */
  readonly #kept = new Map<string, string>()
  #keptChars = 0
  /** Set when the ends of steps that are still running are ignored. */
  #isClosed = false

  constructor(tenant: TenantId, plan: PlanRecord, { deps, onEnd }: { deps: StepRunsDeps; onEnd: () => void }) {
    this.#tenant = tenant
    this.#plan = plan
    this.#deps = deps
    this.#onEnd = onEnd
  }

  get isAborted(): boolean {
    return this.#abort.signal.aborted
  }

  /** The number of running steps. */
  get count(): number {
    return this.#running.size
  }

  /** Starts a step that the store shows as running, unless it was started here before. */
  start(step: PlanStep): void {
    if (this.#started.has(step.id)) return
    this.#started.add(step.id)
    const running = this.#run(step).then((end) => {
      if (!this.#isClosed) this.ends.set(step.id, { at: this.#deps.now().toISOString(), ...end })
      this.#running.delete(running)
      this.#onEnd()
    })
    this.#running.add(running)
  }

  /** Aborts the steps and waits for their ends. It waits at most `withinMs`. */
  async stop(withinMs: number): Promise<void> {
    this.#abort.abort()
    if (this.#running.size === 0) return
    const late = new AbortController()
    const timer = sleep(withinMs, undefined, { signal: late.signal }).catch(() => {})
    await Promise.race([Promise.all(this.#running), timer])
    late.abort()
    this.#isClosed = true
  }

  /** The same, and ignores steps that end later. */
  async close(withinMs: number): Promise<void> {
    this.#isClosed = true
    await this.stop(withinMs)
  }

  /** Returns the error of a step that failed, and what the step has used. Never rejects. */
  async #run(step: PlanStep): Promise<Omit<StepEnd, 'at'>> {
    let paid: Pick<StepEnd, 'spent'> = {}
    try {
      const outputs = await this.#outputsFor(step)
      await this.#assertOwned()
      const run = { ...step, run_id: this.#runIdOf(step), beforeAction: this.#actionRecorder(step) }
      const { spent, ...result } = await this.#deps.runStep(run, outputs, this.#abort.signal)
      if (spent) paid = { spent }
      if ('error' in result) return { ...paid, error: result.error }
      return { ...paid, ...(await this.#save(step, result.output)) }
    } catch (cause) {
      return { ...paid, error: toAppError(cause).message }
    }
  }

  /** The earlier attempts of a step are over before this process begins it. */
  #runIdOf({ id }: PlanStep): string {
    const { plan_id, states } = this.#plan
    const state = states.find((each) => each.id === id)
    if (!state) throw new Error('the plan has no such step')
    return runOfStep(plan_id, state)
  }

  /** Records once that the step may change something, so that it is never repeated. */
  #actionRecorder({ id }: PlanStep): () => Promise<void> {
    const { plans, executor, mayWrite, storeWaitMs } = this.#deps
    return once(async () => {
      for (;;) {
        await this.#untilHeld()
        let isRefused = false
        const fence = () => {
          isRefused = !mayWrite()
          return !isRefused
        }
        const change = () => plans.change(this.#tenant, this.#plan.plan_id, noteAction(id, executor), fence)
        if (await outlast(change, storeWaitMs)) return
        if (!isRefused) await this.#untilAborted() // Another executor has the plan, so the steps here will be aborted.
      }
    })
  }

  async #outputsFor({ depends_on: after = [] }: PlanStep): Promise<ReadonlyMap<string, string>> {
    const { plans, storeWaitMs } = this.#deps
    const stepIds = after.filter((id) => !this.#kept.has(id))
    const kept = [...this.#kept].filter(([id, output]) => after.includes(id) && output !== '')
    if (stepIds.length === 0) return new Map(kept)
    const read = await outlast(() => readOutputs(this.#tenant, this.#plan, { plans, stepIds }), storeWaitMs)
    return new Map([...kept, ...read])
  }

  /** Returns the output when it is to be recorded with the end of the step. An empty output need not be stored. */
  async #save({ id }: PlanStep, output: string): Promise<Pick<StepEnd, 'output'>> {
    const stored = storedOutput(output, this.#plan.steps.length)
    const { plans, storeWaitMs } = this.#deps
    const isShort = output === '' || plans.isRecordedWithEnd(this.#tenant, this.#plan.plan_id, stored)
    if (isShort) {
      this.#kept.set(id, stored)
      return output === '' ? {} : { output: stored }
    }
    await this.#untilHeld()
    if (this.#isClosed) return {}
    await outlast(() => plans.saveOutput(this.#tenant, this.#plan.plan_id, id, stored), storeWaitMs)
    if (this.#keptChars + stored.length > MAX_KEPT_CHARS) return {}
    this.#keptChars += stored.length
    this.#kept.set(id, stored)
    return {}
  }

  /** After a time in which this process was not allowed to act, another one may have taken over the plan. */
  async #assertOwned(): Promise<void> {
    const { plans, executor, mayWrite, storeWaitMs } = this.#deps
    if (mayWrite()) return
    await this.#untilHeld()
    const plan = await outlast(() => plans.get(this.#tenant, this.#plan.plan_id), storeWaitMs)
    if (!plan || !isRunBy(plan, executor)) throw new AppError('unavailable', 'another executor has the plan')
  }

  /** Waits until the steps are aborted, and then throws. */
  async #untilAborted(): Promise<never> {
    const { signal } = this.#abort
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    throw new AppError('unavailable', 'another executor has the plan')
  }

  async #untilHeld(): Promise<void> {
    while (!this.#deps.mayWrite()) {
      if (this.isAborted) throw new AppError('unavailable', 'the executor may not act any more')
      await sleep(LOOK_EVERY_MS)
    }
  }
}

const STORE_WAIT_MS = 15_000
const STORE_PAUSES = [10, 250] as const

/** Repeats an operation while the store is away. Throws what `operation` throws, `unavailable` only after `withinMs`. */
export const outlast = <T>(operation: () => Promise<T>, withinMs = STORE_WAIT_MS): Promise<T> =>
  retryUntil(operation, {
    pauses: STORE_PAUSES,
    until: performance.now() + withinMs,
    mayPass: (cause) => hasKind(cause, 'unavailable'),
  })
