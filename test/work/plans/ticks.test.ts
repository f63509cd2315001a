import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createPlanScheduleStore } from '../../../shared/work/plans/store/plan-schedules.ts'
import { requestCancel } from '../../../shared/work/plans/transitions.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'
import { refusalOf } from '../flows/setup.ts'
import { AT, stepOf } from './calls-setup.ts'
import { openSchedules, PLAN } from './schedule-setup.ts'

const iso = (at: number) => new Date(at).toISOString()

describe('the ticks of a schedule', () => {
  const opened = useTestStore()

  /** A schedule with the name `often`, in a process of its own. */
  async function open(options: Parameters<typeof openSchedules>[1] = {}) {
    const process = openSchedules(opened.store, options)
    const { tenant, schedules, plans, stored } = process
    await schedules.put(tenant, 'often', { every_secs: 60, plan: { ...PLAN, timeout_secs: 30 } })
    return {
      ...process,
      shown: async () => {
        const { last_plan_id, skipped_ticks, last_skip } = await schedules.get(tenant, 'often')
        return { last_plan_id, skipped_ticks, last_skip }
      },
      async endAll() {
        for (const plan of await stored()) await plans.change(tenant, plan?.plan_id ?? '', requestCancel(AT))
      },
    }
  }

  it('each submits the plan once, whoever fires it and however often', async () => {
    const { tenant, plans, fire, stored, jobs, outcomes, endAll, shown } = await open()
    await Promise.all([fire('often', 60_000), fire('often', 60_000), fire('often', 60_000)])
    const [first, ...others] = await stored()
    expect(others).to.deep.equal([])
    expect(first).to.include({ title: 'Report', status: 'queued', timeout_secs: 30, subject: 'anonymous' })
    expect(first?.plan_id).to.match(/^plan_00000000[0-9a-f]{24}$/)
    expect(new Set(jobs.map(({ id }) => id))).to.deep.equal(new Set([first?.plan_id]))
    expect(await shown()).to.deep.equal({ last_plan_id: first?.plan_id, skipped_ticks: 0, last_skip: null })
    await endAll()
    await fire('often', 60_000)
    expect(await stored()).to.have.length(1)
    await fire('often', 120_000)
    const second = (await shown()).last_plan_id ?? ''
    expect(second).to.not.equal(first?.plan_id)
    expect(await plans.get(tenant, second)).to.include({ status: 'queued' })
    expect(new Set(outcomes)).to.deep.equal(new Set(['schedule_ticks submitted']))
  })

  it('one whose plan before has not ended is skipped and counted, until it has', async () => {
    const { fire, stored, outcomes, endAll, shown, state } = await open()
    await fire('often', 60_000)
    const [first] = await stored()
    for (const at of [120_000, 180_000]) await fire('often', at)
    expect(await stored()).to.deep.equal([first])
    expect(await shown()).to.deep.equal({
      last_plan_id: first?.plan_id,
      skipped_ticks: 2,
      last_skip: { at: iso(180_000), reason: 'plan_not_ended' },
    })
    expect(state.counted, 'requests of the tenant').to.equal(1)
    expect(outcomes.slice(1)).to.deep.equal(Array(2).fill('schedule_ticks plan_not_ended'))
    await endAll()
    await fire('often', 240_000)
    expect(await stored()).to.have.length(2)
    expect(await shown()).to.deep.include({
      skipped_ticks: 2,
      last_skip: { at: iso(180_000), reason: 'plan_not_ended' },
    })
  })

  it('D12.5: a request runs it at once, also while it is paused: the ticks wait for that plan, and a second request does', async () => {
    const { tenant, schedules, plans, run, fire, stored, endAll, shown, state } = await open()
    await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN, paused: true })
    const { planId, isReplayed } = await run('often', 'key')
    expect(isReplayed).to.equal(false)
    expect(await plans.get(tenant, planId)).to.include({ status: 'queued', title: 'Report', subject: 'ada' })
    expect(await run('often', 'key')).to.deep.equal({ planId, isReplayed: true })
    const refusal = await refusalOf(run('often'))
    expect(refusal).to.include({ kind: 'conflict' })
    expect(refusal.message).to.include('often').and.include('cancel')
    await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN })
    await fire('often', 60_000)
    expect(await shown()).to.deep.include({ last_plan_id: planId, skipped_ticks: 1 })
    await endAll()
    expect((await run('often', 'key')).planId, 'a key that was used, later').to.equal(planId)
    expect((await run('often')).planId).to.not.equal(planId)
    expect([(await stored()).length, state.counted]).to.deep.equal([2, 0])
    expect((await refusalOf(run('unknown'))).status).to.equal(404)
  })

  it('D12.5: a request that too many waiting plans refuse leaves the schedule as it was', async () => {
    const { run, fire, shown, stored } = await open({ limits: { maxPlans: 0, maxBytes: 1_000_000 } })
    expect((await refusalOf(run('often', 'key'))).status).to.equal(429)
    expect(await shown()).to.deep.equal({ last_plan_id: null, skipped_ticks: 0, last_skip: null })
    await fire('often', 60_000)
    expect((await shown()).last_skip?.reason).to.equal('plan_limit')
    expect(await stored()).to.deep.equal([])
  })

  it('D36.1: a request without a key that is 503 leaves no plan behind that its store has taken all the same', async () => {
    const { tenant, plans, run, jobs, shown } = await open()
    const create = plans.create.bind(plans)
    plans.create = async (...args) => {
      await create(...args)
      plans.create = create
      throw new AppError('unavailable', 'the store does not answer')
    }
    expect((await refusalOf(run('often'))).status).to.equal(503)
    const left = async () => (await plans.list(tenant, { limit: 5 })).plans
    await until(async () => (await left()).length === 0, { what: 'the plan to be taken back' })
    expect([(await shown()).last_plan_id, jobs]).to.deep.equal([null, []])
  })

  it('of two that are due at different times and fire at one moment, one submits its plan and the other is skipped', async () => {
    const { fire, stored, outcomes, shown } = await open()
    await Promise.all([fire('often', 60_000), fire('often', 120_000)])
    const [plan, ...others] = await stored()
    expect(others).to.deep.equal([])
    expect(outcomes).to.have.members(['schedule_ticks submitted', 'schedule_ticks plan_not_ended'])
    expect(await shown()).to.deep.include({ last_plan_id: plan?.plan_id, skipped_ticks: 1 })
  })

  it('one that is handed out again after a later one submitted its plan does not set the last plan back', async () => {
    const { fire, stored, endAll, shown } = await open()
    await fire('often', 60_000)
    await endAll()
    await fire('often', 120_000)
    const later = (await shown()).last_plan_id
    await fire('often', 60_000)
    expect((await shown()).last_plan_id).to.equal(later)
    await fire('often', 180_000)
    expect(await stored(), 'the plan of the later one has not ended').to.have.length(2)
  })

  it('one whose process died before it stored the plan holds others up for a minute, and goes on when it is handed out again', async () => {
    const { fire, stored, records, tenant, endAll, state } = await open()
    const claim = { planId: 'plan_of_the_dead', lastId: null, untilMs: state.now.getTime() + 60_000 }
    await records.claim(tenant, 'often', claim)
    await fire('often', 60_000)
    expect(await stored()).to.deep.equal([])
    state.now = new Date(claim.untilMs)
    await fire('often', 120_000)
    const [plan] = await stored()
    expect(plan).to.include({ title: 'Report' })
    await endAll()
    const planId = (await records.get(tenant, 'often')).last_plan_id
    expect(planId).to.equal(plan?.plan_id)
  })

  it('one above the rate of the tenant is skipped and counted', async () => {
    let isAllowed = false
    const { fire, stored, outcomes, shown } = await open({ admits: () => isAllowed })
    await fire('often', 60_000)
    expect(await stored()).to.deep.equal([])
    const skip = { at: iso(60_000), reason: 'rate_limit' }
    expect(await shown()).to.deep.equal({ last_plan_id: null, skipped_ticks: 1, last_skip: skip })
    isAllowed = true
    await fire('often', 120_000)
    expect(await stored()).to.have.length(1)
    expect(outcomes).to.deep.equal(['schedule_ticks rate_limit', 'schedule_ticks submitted'])
  })

  it('one of a tenant with too many plans is skipped and counted', async () => {
    const { fire, stored, outcomes, shown } = await open({ limits: { maxPlans: 0, maxBytes: Infinity } })
    await fire('often', 60_000)
    expect(await stored()).to.deep.equal([])
    const skip = { at: iso(60_000), reason: 'plan_limit' }
    expect(await shown()).to.deep.equal({ last_plan_id: null, skipped_ticks: 1, last_skip: skip })
    expect(outcomes).to.deep.equal(['schedule_ticks plan_limit'])
  })

  it('one that is skipped again, because it was handed out again, counts once for its schedule', async () => {
    const { fire, shown } = await open({ admits: () => false })
    await fire('often', 60_000)
    await fire('often', 60_000)
    expect(await shown()).to.deep.include({ skipped_ticks: 1 })
    await fire('often', 120_000)
    expect(await shown()).to.deep.include({ skipped_ticks: 2 })
  })

  it('one that its process could not record is recorded when it is handed out again, and submits no second plan', async () => {
    let isAllowed = true
    const { fire, stored, records, shown, tenant } = await open({ admits: () => isAllowed })
    await fire('often', 60_000)
    await records.remove(tenant, 'often') // As if the process had died after the submit.
    isAllowed = false
    await fire('often', 60_000)
    const [plan, ...others] = await stored()
    expect(others).to.deep.equal([])
    expect(await shown()).to.deep.equal({ last_plan_id: plan?.plan_id, skipped_ticks: 0, last_skip: null })
  })

  it('one that fails, because the store does not answer, is neither submitted nor skipped', async () => {
    const away = new AppError('unavailable', 'the limits cannot be read')
    const { fire, stored, outcomes, shown } = await open({
      admits() {
        throw away
      },
    })
    expect(await refusalOf(fire('often', 60_000))).to.equal(away)
    expect(await stored()).to.deep.equal([])
    expect(outcomes).to.deep.equal([])
    expect(await shown()).to.deep.equal({ last_plan_id: null, skipped_ticks: 0, last_skip: null })
  })

  it('one whose plan cannot be carried out any more fails, and is neither submitted nor skipped', async () => {
    const { tenant, fire, stored, outcomes, shown } = await open()
    const plan = { steps: [stepOf('a', 'a')] }
    const schedule = { name: 'often', timing: { every_secs: 60 }, is_paused: false, plan }
    await createPlanScheduleStore(opened.store).put(tenant, schedule)
    expect(await refusalOf(fire('often', 60_000))).to.include({ status: 400 })
    expect(await stored()).to.deep.equal([])
    expect(outcomes).to.deep.equal([])
    expect(await shown()).to.deep.include({ skipped_ticks: 0 })
  })

  it('D12.4: one of a schedule that is paused does nothing, also when it was handed out before', async () => {
    const { fire, stored, told, schedules, tenant, shown, outcomes } = await open()
    await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN, paused: true })
    told.length = 0
    await fire('often', 60_000)
    expect(await stored()).to.deep.equal([])
    expect([told, outcomes]).to.deep.equal([[], []])
    expect(await shown()).to.deep.equal({ last_plan_id: null, skipped_ticks: 0, last_skip: null })
    await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN })
    await fire('often', 120_000)
    expect(await stored()).to.have.length(1)
  })

  it('one of a schedule that was deleted does nothing but remove it from the queue, and a new schedule begins anew', async () => {
    const { fire, stored, told, schedules, tenant, shown, outcomes } = await open({ admits: () => false })
    await fire('often', 60_000)
    await schedules.remove(tenant, 'often')
    told.length = 0
    await fire('often', 120_000)
    expect(await stored()).to.deep.equal([])
    expect(told).to.deep.equal([['often', undefined]])
    expect(outcomes).to.have.length(1)
    await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN })
    expect(await shown()).to.deep.equal({ last_plan_id: null, skipped_ticks: 0, last_skip: null })
  })

  it('the ticks of a tenant, and of another schedule, are their own', async () => {
    const [one, other] = [await open(), await open()]
    await one.schedules.put(one.tenant, 'second', { every_secs: 60, plan: PLAN })
    await one.fire('often', 60_000)
    await one.fire('second', 60_000)
    await other.fire('often', 60_000)
    expect(await one.stored()).to.have.length(2)
    expect(await other.stored()).to.have.length(1)
    expect(await other.shown()).to.deep.include({ skipped_ticks: 0 })
  })
})
