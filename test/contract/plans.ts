import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { SYSTEM_TENANT } from '../../shared/kernel/tenant.ts'
import type { PlanHead, Plans } from '../../shared/work/plans/port.ts'
import { ACTIVE_PLANS } from '../../shared/work/plans/store/documents.ts'
import { StoredPlans } from '../../shared/work/plans/store/plans.ts'
import { beginStep, endStep, finish, requestCancel, takeOver } from '../../shared/work/plans/transitions.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'
import { at, begin, by, claim, DIAMOND, record, START, step } from '../work/plans/plan-setup.ts'
import { planBeginContract } from './plan-begins.ts'
import { planCrashContract } from './plan-crashes.ts'
import { planLimitsContract } from './plan-limits.ts'
import { planListContract } from './plan-list.ts'
import type { OpenStore } from './store.ts'
import { watchStore } from './watched-store.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const ODD_IDS = ['__proto__', 'constructor', 'a.b', ' ', '$where', 'ä🙂', 'x'.repeat(128), 'plan_id']

/** The tests of the stored plans, which every store passes. */
export function planContract(open: OpenStore): void {
  let plans: Plans
  let clock = Date.parse(START)
  const now = () => new Date(clock)
  const store = useOpened(() => open(COLLECTIONS))
  before(async () => {
    plans = new StoredPlans(store, { now })
  })

  const create = async (steps = DIAMOND, more = {}) => {
    const plan = record(steps, more)
    expect(await plans.create(TENANT, plan)).to.equal(true)
    return plan
  }
  const isActive = async ({ plan_id }: PlanHead) =>
    (await store.collection(ACTIVE_PLANS).get(SYSTEM_TENANT, { plan_id })) !== undefined
  const untilRetired = (plan: PlanHead) =>
    until(async () => !(await isActive(plan)), { what: 'the plan to be retired' })

  it('a plan is found by its own tenant only, exactly as it was stored', async () => {
    const steps = [...ODD_IDS.map((id) => step(id)), { ...step('z', '__proto__'), writes: ['a'], idempotent: true }]
    const plan = await create(steps, { title: 'T', parallel: true, timeout_secs: 5, idempotencyKey: 'k' })
    const { plan_id } = plan
    expect(await plans.get(TENANT, plan_id)).to.deep.equal(plan)
    expect(await new StoredPlans(store).get(TENANT, plan_id)).to.deep.equal(plan)
    expect(await plans.get(OTHER, plan_id)).to.equal(undefined)
    expect(await plans.change(OTHER, plan_id, begin(by(7)))).to.equal(undefined)
    await plans.saveOutput(TENANT, plan_id, 'z', 'secret')
    expect(await plans.outputs(OTHER, plan_id, ['z'])).to.deep.equal(new Map())
    expect((await plans.list(OTHER, { limit: 200 })).plans.map((each) => each.plan_id)).to.not.include(plan_id)
    await plans.retire(OTHER, plan_id)
    expect(await isActive(plan)).to.equal(true)
  })

  it('an id is stored once, also when several processes store it, with the steps of the one that succeeded', async () => {
    const rival = new StoredPlans(store)
    for (let round = 0; round < 10; round++) {
      const [one, two] = [record([step('one')]), record([step('two')])]
      const { plan_id } = one
      const created = await Promise.all([plans.create(TENANT, one), rival.create(TENANT, { ...two, plan_id })])
      expect(created.filter(Boolean)).to.have.length(1)
      const found = await new StoredPlans(store).get(TENANT, plan_id)
      expect(found?.steps).to.deep.equal(created[0] ? one.steps : two.steps)
      expect(found?.states[0]?.id).to.equal(created[0] ? 'one' : 'two')
    }
  })

  it('of two executors that begin a plan, or a step of it, one succeeds', async () => {
    const rival = new StoredPlans(store)
    for (let round = 0; round < 20; round++) {
      const { plan_id } = await create([step('a'), step('b')], { parallel: true })
      const race = (one: Parameters<Plans['change']>[2], two: Parameters<Plans['change']>[2]) =>
        Promise.all([plans.change(TENANT, plan_id, one), rival.change(TENANT, plan_id, two)])
      const begun = await race(begin(by(7)), begin(by(8)))
      expect(begun.filter(Boolean)).to.have.length(1)
      const executor = begun[0] ? 7 : 8
      const steps = await race(beginStep('a', by(executor)), beginStep('a', by(executor)))
      expect(steps.filter(Boolean)).to.have.length(1)
      const both = await race(endStep('a', by(executor)), beginStep('b', by(executor)))
      expect(both.filter(Boolean)).to.have.length(2)
      const taken = await race(takeOver({ ...by(9), from: executor }), takeOver({ ...by(10), from: executor }))
      expect(taken.filter(Boolean)).to.have.length(1)
      const found = await plans.get(TENANT, plan_id)
      expect(found).to.include({ executor: taken[0] ? 9 : 10, starts: 2 })
      expect(found?.states.map(({ status }) => status)).to.deep.equal(['done', 'failed'])
    }
  })

  it('a change is made to the record as it is now, whatever this process has read before', async () => {
    const { plan_id } = await create([step('a')])
    await plans.get(TENANT, plan_id)
    const other = new StoredPlans(store)
    await other.change(TENANT, plan_id, claim(by(7)))
    expect(await plans.change(TENANT, plan_id, begin(by(8)))).to.equal(undefined)
    const asked = await plans.change(TENANT, plan_id, requestCancel(at(3)))
    expect(asked).to.include({ is_cancel_requested: true, executor: 7 })
    expect(await other.change(TENANT, plan_id, (plan) => plan)).to.deep.equal(asked)
  })

  it('a process that may not write writes nothing', async () => {
    const { watched, writes } = watchStore(store)
    const paused = new StoredPlans(watched)
    const plan = await create()
    expect(await paused.change(TENANT, plan.plan_id, claim(by(7)), () => false)).to.equal(undefined)
    expect(
      await paused.change(
        TENANT,
        plan.plan_id,
        (same) => same,
        () => false,
      ),
    ).to.deep.equal(plan)
    expect(writes).to.deep.equal([])
    expect(await plans.get(TENANT, plan.plan_id)).to.deep.equal(plan)
  })

  it('a short plan is stored in two writes and read in one by another process; each change is one write, and a look one read', async () => {
    const { watched, operations } = watchStore(store)
    const [creating, counted] = [new StoredPlans(watched), new StoredPlans(watched)]
    await creating.create(TENANT, record([step('a')]))
    expect(operations.splice(0)).to.deep.equal(['insert active_plans', 'total active_plans', 'insert plans'])
    const plan = record([step('a')])
    const { plan_id } = plan
    await creating.create(TENANT, plan)
    const again = operations.splice(0).filter((each) => each !== 'total active_plans') // It is counted once a second.
    expect(again).to.deep.equal(['insert active_plans', 'insert plans'])
    await counted.get(TENANT, plan_id)
    expect(operations.splice(0)).to.deep.equal(['get plans'])
    await counted.change(TENANT, plan_id, claim(by(7)))
    expect(operations.splice(0)).to.deep.equal(['replace plans'])
    await counted.change(TENANT, plan_id, (same) => same)
    expect(operations.splice(0)).to.deep.equal(['get plans'])
    expect(counted.isRecordedWithEnd(TENANT, plan_id, 'x'.repeat(1_024))).to.equal(true)
    expect(counted.isRecordedWithEnd(TENANT, plan_id, 'x'.repeat(1_025))).to.equal(false)
    await counted.saveOutput(TENANT, plan_id, 'a', 'x')
    expect(operations.splice(0)).to.deep.equal(['insert plan_outputs'])
    await counted.change(TENANT, plan_id, endStep('a', { ...by(7), output: 'x' }))
    expect(operations.splice(0)).to.deep.equal(['replace plans'])
    await counted.change(TENANT, plan_id, finish(by(7)))
    await until(() => operations.length > 1, { what: 'the plan to leave the list of active ones' })
    expect(operations.splice(0)).to.deep.equal(['replace plans', 'deleteMany active_plans'])
    expect(await counted.get(TENANT, plan_id)).to.include({ status: 'done' })
    expect(operations.splice(0), 'an ended plan never changes').to.deep.equal([])
    const found = await plans.get(TENANT, plan_id)
    expect(found).to.deep.equal(await counted.get(TENANT, plan_id))
    expect(found?.states[0]).to.include({ status: 'done', output: 'x' })
  })

  it('long steps are stored apart and read once; outputs then are, too, as processes of earlier versions do it', async () => {
    const { watched, operations } = watchStore(store)
    const counted = new StoredPlans(watched)
    const plan = record([{ ...step('a'), prompt: 'x'.repeat(5_000) }])
    const { plan_id } = plan
    await new StoredPlans(watched).create(TENANT, plan)
    expect(operations.splice(0).slice(-2)).to.deep.equal(['insert plan_steps', 'insert plans'])
    expect(await counted.get(TENANT, plan_id)).to.deep.equal(plan)
    await counted.get(TENANT, plan_id)
    expect(operations.splice(0)).to.deep.equal(['get plans', 'get plan_steps', 'get plans'])
    expect(counted.isRecordedWithEnd(TENANT, plan_id, 'x')).to.equal(false)
  })

  it('the outputs in the record of a plan take at most 8 KB', async () => {
    const steps = Array.from({ length: 12 }, (_, i) => step(`s${i}`))
    const { plan_id } = await create(steps, { parallel: true })
    await plans.change(TENANT, plan_id, claim(by(7)))
    for (let i = 0; i < 8; i++) {
      const output = String(i).repeat(1_000)
      expect(plans.isRecordedWithEnd(TENANT, plan_id, output)).to.equal(true)
      await plans.change(TENANT, plan_id, endStep(`s${i}`, { ...by(7), output }))
    }
    expect(plans.isRecordedWithEnd(TENANT, plan_id, 'x'.repeat(1_000))).to.equal(false)
    expect(plans.isRecordedWithEnd(TENANT, plan_id, 'x')).to.equal(true)
  })

  it('the process that has stored a plan knows it for a moment without reading it, until it changes it, and can take it once', async () => {
    const { watched, operations } = watchStore(store)
    const counted = new StoredPlans(watched)
    const [plan, changed] = [record([step('a')]), record([step('a')])]
    for (const each of [plan, changed]) await counted.create(TENANT, each)
    operations.length = 0
    expect(counted.created(OTHER, plan.plan_id)).to.equal(undefined)
    expect(plans.created(TENANT, plan.plan_id)).to.equal(undefined)
    expect(counted.created(TENANT, plan.plan_id)).to.deep.equal(plan)
    expect(counted.takeCreated(TENANT, plan.plan_id)).to.deep.equal(plan)
    expect(counted.takeCreated(TENANT, plan.plan_id)).to.equal(undefined)
    expect(operations).to.deep.equal([])
    await counted.change(TENANT, changed.plan_id, claim(by(7)))
    expect(counted.created(TENANT, changed.plan_id)).to.equal(undefined)
  })

  it('outputs are found by step, the last one of each, and may be long', async () => {
    const { plan_id } = await create()
    const long = '\u0001🙂'.repeat(500_000)
    for (const id of ODD_IDS) await plans.saveOutput(TENANT, plan_id, id, `of ${id}`)
    await plans.saveOutput(TENANT, plan_id, ' ', long)
    const found = await plans.outputs(TENANT, plan_id, [...ODD_IDS, 'none'])
    expect([...found]).to.deep.equal(ODD_IDS.map((id) => [id, id === ' ' ? long : `of ${id}`]))
    expect(await plans.outputs(TENANT, 'plan_none', ODD_IDS)).to.deep.equal(new Map())
  })

  it('steps above the limit of the store are refused with 413', async () => {
    const plan = record([{ ...step('a'), prompt: 'x'.repeat(9e6) }])
    const failure = await plans.create(TENANT, plan).catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'invalid_request', status: 413, param: '/steps' })
    expect(await plans.get(TENANT, plan.plan_id)).to.equal(undefined)
  })

  it('the active plans are those of all tenants that have not ended, oldest first, in pages', async () => {
    const waiting = [record([step('a')], { at: at(-20) }), record([step('a')], { at: at(-10) })] as const
    await plans.create(OTHER, waiting[1])
    await plans.create(TENANT, waiting[0])
    const ended = await create([step('a')], { at: at(-15) })
    await plans.change(TENANT, ended.plan_id, requestCancel(at(9)))
    await untilRetired(ended)
    const page = await plans.active(undefined)
    expect(page.slice(0, 2)).to.deep.equal([
      { tenant: TENANT, planId: waiting[0].plan_id },
      { tenant: OTHER, planId: waiting[1].plan_id },
    ])
    expect(await new StoredPlans(store).active(waiting[0].plan_id)).to.deep.equal(page.slice(1))
    const last = page.at(-1)?.planId ?? ''
    expect(await plans.active(last)).to.deep.equal([])
    await store.collection(ACTIVE_PLANS).delete(SYSTEM_TENANT, { plan_id: last })
    expect(await plans.active(last), 'after a plan that has been removed since').to.deep.equal([])
  })

  it('a plan that has ended is retired, and one whose creation was not completed in ten minutes', async () => {
    const running = await create()
    await plans.retire(TENANT, running.plan_id)
    expect(await isActive(running)).to.equal(true)
    const half = record([step('a')])
    const { watched, failAt } = watchStore(store)
    failAt('insert plans')
    expect(await new StoredPlans(watched).create(TENANT, half).catch(() => 'stopped')).to.equal('stopped')
    await plans.retire(TENANT, half.plan_id)
    expect(await isActive(half)).to.equal(true)
    clock += 600_001
    await plans.retire(OTHER, half.plan_id)
    expect(await isActive(half)).to.equal(true)
    await plans.retire(TENANT, half.plan_id)
    await plans.retire(TENANT, running.plan_id)
    expect([await isActive(half), await isActive(running)]).to.deep.equal([false, true])
    failAt('deleteMany active_plans')
    const ended = await new StoredPlans(watched).change(TENANT, running.plan_id, requestCancel(at(9)))
    expect(ended?.status).to.equal('cancelled')
    await plans.retire(TENANT, running.plan_id)
    expect(await isActive(running)).to.equal(false)
  })

  it('steps that belong to no plan are deleted', async () => {
    const plan = await create([{ ...step('a'), prompt: 'x'.repeat(5_000) }])
    const { watched, operations } = watchStore(store)
    expect(await new StoredPlans(watched).create(TENANT, plan)).to.equal(false)
    expect(operations.at(-1)).to.equal('delete plan_steps')
    expect(await new StoredPlans(store).get(TENANT, plan.plan_id)).to.deep.equal(plan)
  })

  planListContract(() => plans)
  planLimitsContract(() => store)
  planBeginContract(() => store)
  planCrashContract(() => store)
}
