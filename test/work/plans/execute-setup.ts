import { expect } from 'chai'
import type { PlanStep } from '../../../shared/kernel/plan-step.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { executePlan, type PlanExecutionDeps, type PlanOutcome } from '../../../shared/work/plans/execute.ts'
import type { PlanEvent, PlanRecord, Plans } from '../../../shared/work/plans/port.ts'
import { readOutputs } from '../../../shared/work/plans/step-output.ts'
import type { StepResult, StepRun } from '../../../shared/work/plans/step-runs.ts'
import { StoredPlans } from '../../../shared/work/plans/store/plans.ts'
import { type NewPlan } from '../../../shared/work/plans/transitions.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'
import { claim, record } from './plan-setup.ts'

export const TENANT = tenantId('t_1')
const EXECUTOR = 7

const short = (event: PlanEvent): string =>
  [event.type, 'step_id' in event && event.step_id, 'status' in event && event.status].filter(Boolean).join(' ')

/** A step that a test ends. It fails when it is aborted, unless the test wants it to go on. */
type OpenStep = { step: StepRun; outputs: ReadonlyMap<string, string>; signal: AbortSignal; end(r: StepResult): void }

type Options = { plan?: Partial<NewPlan>; deps?: Partial<PlanExecutionDeps> }

/** One execution, whose steps the test ends. */
export class Execution {
  readonly started: OpenStep[] = []
  readonly events: PlanEvent[] = []
  readonly cancel = new AbortController()
  readonly drain = new AbortController()
  readonly stop = new AbortController()
  readonly plans: Plans
  isHeld = true
  /** The reader leaves after an event of this type. */
  leavesAfter: PlanEvent['type'] | undefined
  ended: Promise<PlanOutcome> = Promise.resolve('lost')
  readonly #plan: PlanRecord

  constructor(plans: Plans, plan: PlanRecord) {
    this.plans = plans
    this.#plan = plan
  }

  get planId(): string {
    return this.#plan.plan_id
  }

  /** Creates, claims and executes a plan. */
  static async of(store: Store, steps: PlanStep[], options: Options = {}): Promise<Execution> {
    return (await Execution.claimed(store, steps, options)).execute(options.deps)
  }

  static async claimed(store: Store, steps: PlanStep[], { plan = {}, deps = {} }: Options = {}): Promise<Execution> {
    const plans = new StoredPlans(store)
    const created = record(steps, { at: new Date().toISOString(), ...plan })
    await plans.create(TENANT, created)
    const at = deps.now?.() ?? new Date()
    const claimed = await plans.change(TENANT, created.plan_id, claim({ executor: EXECUTOR, at: at.toISOString() }))
    return new Execution(plans, claimed ?? expect.fail('the plan was not claimed'))
  }

  execute(more: Partial<PlanExecutionDeps> = {}): this {
    const deps: PlanExecutionDeps = {
      plans: this.plans,
      executor: EXECUTOR,
      mayWrite: () => this.isHeld,
      now: () => new Date(),
      runStep: (step, outputs, signal) => this.#open({ step, outputs, signal }),
      cancelled: this.cancel.signal,
      draining: this.drain.signal,
      stopped: this.stop.signal,
      ...more,
    }
    this.ended = this.#read(executePlan(TENANT, this.#plan, deps))
    this.ended.catch(() => {}) // The test awaits it.
    return this
  }

  /** The outputs of steps by their ids, as every process finds them. */
  async outputs(...stepIds: string[]): Promise<ReadonlyMap<string, string>> {
    return readOutputs(TENANT, await this.stored(), { plans: this.plans, stepIds })
  }

  async #read(iterator: AsyncGenerator<PlanEvent, PlanOutcome, undefined>): Promise<PlanOutcome> {
    for (;;) {
      const { done, value } = await iterator.next()
      if (done) return value
      this.events.push(value)
      if (this.leavesAfter === value.type) return iterator.return('lost').then(() => 'lost')
    }
  }

  #open({ step, outputs, signal }: Omit<OpenStep, 'end'>): Promise<StepResult> {
    const { promise, resolve } = Promise.withResolvers<StepResult>()
    this.started.push({ step, outputs, signal, end: resolve })
    return promise
  }

  /** The step, once it has started. */
  async step(id: string): Promise<OpenStep> {
    const found = () => this.started.find(({ step }) => step.id === id)
    return until(found, { what: `the step ${id} to start` })
  }

  /** Ends the step with this result when it is aborted. Resolves when the step has started. */
  async endsWhenAborted(id: string, result: StepResult = { error: 'aborted' }): Promise<AbortSignal> {
    const { signal, end } = await this.step(id)
    if (signal.aborted) end(result)
    else signal.addEventListener('abort', () => end(result))
    return signal
  }

  async done(id: string, output = `output of ${id}`): Promise<void> {
    ;(await this.step(id)).end({ output })
  }

  async failed(id: string, error: string): Promise<void> {
    ;(await this.step(id)).end({ error })
  }

  async stored(): Promise<PlanRecord> {
    return (await this.plans.get(TENANT, this.planId)) ?? expect.fail('the plan is gone')
  }

  get startedIds(): string[] {
    return this.started.map(({ step }) => step.id)
  }

  get shown(): string[] {
    return this.events.map(short)
  }
}
