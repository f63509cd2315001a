import { expect } from 'chai'
import fc from 'fast-check'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { executePlan } from '../../../shared/work/plans/execute.ts'
import { StoredPlans } from '../../../shared/work/plans/store/plans.ts'
import { takeOver } from '../../../shared/work/plans/transitions.ts'
import { type Around, aroundStore } from '../../support/around-store.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'
import { Execution, TENANT } from './execute-setup.ts'
import { anyPlan, by, claim, DIAMOND, record, statusesOf, step } from './plan-setup.ts'

const away = () => new AppError('unavailable', 'the store is away')
const isWrite = (method: string) => method !== 'get' && method !== 'page'

describe('the execution of a plan under faults', () => {
  const opened = useTestStore()
  const FOREVER = { deps: { lookEveryMs: 1e6 } }
  const SOON = { deps: { lookEveryMs: 20 } }

  /** The store, of which operations fail while `isAway`, before or after they have happened. */
  const failing = () => {
    const state = { isAway: false, isDone: false, failures: 0 }
    const around: Around = async (_method, act) => {
      if (!state.isAway) return act()
      state.failures++
      if (state.isDone) await act()
      throw away()
    }
    return { state, store: aroundStore(opened.store, around) }
  }

  for (const isDone of [false, true])
    it(`goes on after an outage in which writes ${isDone ? 'have only lost their answers' : 'have failed'}`, async () => {
      const broken = failing()
      const execution = await Execution.of(broken.store, DIAMOND, SOON)
      await execution.step('a')
      Object.assign(broken.state, { isAway: true, isDone })
      await until(() => broken.state.failures > 1, { what: 'looks that fail' })
      broken.state.failures = 0
      await execution.done('a')
      await until(() => broken.state.failures > 3, { what: 'the executor to try again' })
      broken.state.isAway = false
      for (const id of ['b', 'c', 'd']) await execution.done(id)
      expect(await execution.ended).to.equal('ended')
      expect(await execution.stored()).to.include({ status: 'done', error: null })
      expect(execution.startedIds).to.deep.equal(['a', 'b', 'c', 'd'])
      expect(new Set(execution.shown).size).to.equal(execution.shown.length).and.to.equal(10)
    })

  it('while it may not act, no step begins and nothing is written; then it goes on', async () => {
    const writes: string[] = []
    const watched = aroundStore(opened.store, (method, act) => {
      if (isWrite(method)) writes.push(method)
      return act()
    })
    const execution = await Execution.claimed(watched, [step('a'), step('b')])
    writes.length = 0
    let asked = 0
    execution.execute({ ...FOREVER.deps, mayWrite: () => ++asked > 3 && execution.isHeld })
    await execution.step('a')
    expect(asked).to.be.greaterThan(3)
    execution.isHeld = false
    asked = 0
    await execution.done('a')
    await until(() => asked > 3, { what: 'the executor to ask again' })
    expect(writes).to.deep.equal([])
    expect(execution.startedIds).to.deep.equal(['a'])
    execution.isHeld = true
    await execution.done('b')
    expect(await execution.ended).to.equal('ended')
  })

  it('a step that was claimed, but taken over before this process might act, is not started', async () => {
    const execution = await Execution.claimed(opened.store, [step('a')])
    execution.isHeld = false
    execution.execute(SOON.deps)
    await new StoredPlans(opened.store).change(TENANT, execution.planId, takeOver({ ...by(8), from: 7 }))
    execution.isHeld = true
    expect(await execution.ended).to.equal('lost')
    expect(execution.startedIds).to.deep.equal([])
  })

  it('D34: an action waits while this process may not act, and is never made once another executor has the plan', async () => {
    const execution = await Execution.claimed(opened.store, [step('a'), step('b')], { plan: { parallel: true } })
    let asked = 0
    const mayWrite = () => {
      asked++
      return execution.isHeld
    }
    execution.execute({ ...SOON.deps, mayWrite })
    const hasActed = async (id: string) => (await execution.stored()).states.find((each) => each.id === id)?.has_acted
    const { step: first } = await execution.step('a')
    execution.isHeld = false
    asked = 0
    const waiting = first.beforeAction()
    await until(() => asked > 2, { what: 'the step to ask again' })
    expect(await hasActed('a')).to.equal(undefined)
    execution.isHeld = true
    await waiting
    expect(await hasActed('a')).to.equal(true)

    const other = new StoredPlans(opened.store)
    await other.change(TENANT, execution.planId, takeOver({ ...by(8), from: 7 }))
    const { step: second, signal } = await execution.step('b')
    const late = second.beforeAction().catch((cause: AppError) => [cause.kind, signal.aborted])
    await execution.endsWhenAborted('b')
    expect(await late).to.deep.equal(['unavailable', true])
    expect(await execution.ended).to.equal('lost')
    expect(await hasActed('b')).to.equal(undefined)
  })

  it('a process that may not write any more leaves the plan to others when it is stopped', async () => {
    const execution = await Execution.of(opened.store, DIAMOND, FOREVER)
    const signal = await execution.endsWhenAborted('a', { output: 'x' })
    execution.isHeld = false
    execution.stop.abort()
    expect(await execution.ended).to.equal('lost')
    expect(signal.aborted).to.equal(true)
    expect(statusesOf(await execution.stored())).to.include({ a: 'running', b: 'pending' })
    expect(await execution.outputs('a')).to.deep.equal(new Map())
  })

  it('a reader that leaves aborts the steps, and nothing is recorded', async () => {
    const execution = await Execution.claimed(opened.store, DIAMOND)
    execution.leavesAfter = 'step_started'
    execution.execute(FOREVER.deps)
    const signal = await execution.endsWhenAborted('a', { output: 'x' })
    expect(await execution.ended).to.equal('lost')
    expect(signal.aborted).to.equal(true)
    expect(statusesOf(await execution.stored())).to.include({ a: 'running', b: 'pending' })
    expect(await execution.outputs('a')).to.deep.equal(new Map())
  })

  it('a step that ignores its abort has failed, also when it ends before the store is back', async () => {
    const broken = failing()
    const execution = await Execution.of(broken.store, [step('a')], FOREVER)
    const { end } = await execution.step('a')
    broken.state.isAway = true
    execution.cancel.abort()
    await until(() => broken.state.failures > 0, { what: 'the executor to record the end' })
    end({ output: '' })
    await until(() => broken.state.failures > 2, { what: 'the executor to try again' })
    broken.state.isAway = false
    expect(await execution.ended).to.equal('ended')
    expect(statusesOf(await execution.stored())).to.deep.equal({ a: 'failed' })
  })

  it('a step whose output cannot be stored has failed, and what it has used is recorded', async () => {
    let isFull = false
    const full = aroundStore(opened.store, (method, act) =>
      isFull && method === 'insert' ? Promise.reject(new Error('the disk is full')) : act(),
    )
    const execution = await Execution.of(full, [step('a')], FOREVER)
    const { end } = await execution.step('a')
    isFull = true
    const spent = { input_tokens: 8, output_tokens: 2, cost_usd: 0.5 }
    end({ output: 'x'.repeat(2_000), spent })
    expect(await execution.ended).to.equal('ended')
    expect((await execution.stored()).states[0]).to.deep.include({ status: 'failed', spent })
  })

  it('an outage that does not end is an error, and the steps are aborted', async () => {
    const broken = failing()
    const steps = [step('a'), step('b')]
    const deps = { ...FOREVER.deps, storeWaitMs: 100 }
    const execution = await Execution.of(broken.store, steps, { plan: { parallel: true }, deps })
    const signal = await execution.endsWhenAborted('b')
    broken.state.isAway = true
    await execution.done('a', '')
    const failure = await execution.ended.catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'unavailable' })
    expect(signal.aborted).to.equal(true)
  })

  it('D7.3: whatever the store loses and whenever executors die, no step has its effect twice, and every plan ends', async () => {
    const faults = fc.array(fc.constantFrom('ok', 'ok', 'ok', 'lose answer', 'die'), { minLength: 60, maxLength: 60 })
    const rule = fc.asyncProperty(anyPlan(8), faults, async ({ steps, parallel }, plan) => {
      await new Torture(opened.store, plan).endure(record(steps, { parallel }))
    })
    await fc.assert(rule, { numRuns: 60 })
  })
})

/** Executes one plan with executors that die, and a store that loses answers, at the operations that `faults` says. */
class Torture {
  readonly effects: string[] = []
  readonly #store: Store
  readonly #faults: string[]
  #deaths = 0

  constructor(store: Store, faults: string[]) {
    this.#store = store
    this.#faults = [...faults]
  }

  async endure(plan: ReturnType<typeof record>): Promise<void> {
    const plans = new StoredPlans(this.#store)
    await plans.create(TENANT, plan)
    for (let executor = 1; executor < 10; executor++) {
      const found = (await plans.get(TENANT, plan.plan_id)) ?? expect.fail()
      if (found.ended_at !== null) break
      await this.#execute(plan.plan_id, executor).catch(() => {})
    }
    const ended = (await plans.get(TENANT, plan.plan_id)) ?? expect.fail()
    expect(ended.ended_at).to.be.a('string')
    const mayRepeat = new Set(plan.steps.filter(({ idempotent }) => idempotent).map(({ id }) => id))
    const once = this.effects.filter((id) => !mayRepeat.has(id))
    expect(new Set(once).size).to.equal(once.length)
    for (const { id, status } of ended.states) if (status === 'done') expect(this.effects).to.include(id)
    if (this.#deaths === 0) expect(ended.status).to.equal('done')
  }

  async #execute(planId: string, executor: number): Promise<void> {
    const leave = new AbortController()
    const plans = new StoredPlans(aroundStore(this.#store, (method, act) => this.#operate(method, act, leave)))
    const start = claim(by(executor))
    const from = executor - 1
    const claimed = await plans
      .change(TENANT, planId, (plan) => start(plan) ?? takeOver({ ...by(executor), from })(plan))
      .catch((cause: unknown) => {
        this.#deaths++ // The next executor cannot know that no step has begun.
        throw cause
      })
    if (!claimed || claimed.ended_at !== null) return
    const never = new AbortController().signal
    const events = executePlan(TENANT, claimed, {
      plans,
      executor,
      mayWrite: () => !leave.signal.aborted,
      now: () => new Date(),
      runStep: async ({ id }) => {
        this.effects.push(id)
        return { output: `of ${id}` }
      },
      cancelled: never,
      draining: never,
      stopped: never,
    })
    for await (const event of events) if (leave.signal.aborted) throw new Error(`dead at ${event.type}`)
  }

  async #operate<T>(method: string, act: () => Promise<T>, leave: AbortController): Promise<T> {
    if (leave.signal.aborted) throw new Error('dead')
    const fault = isWrite(method) ? this.#faults.shift() : 'ok'
    const result = await act()
    if (fault === 'lose answer') throw away()
    if (fault !== 'die') return result
    this.#deaths++
    leave.abort()
    throw new Error('dead')
  }
}
