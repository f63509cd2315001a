import { expect } from 'chai'
import { AppError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import type { PlanRecord, Plans } from '../../shared/plans/port.ts'
import { PlanSchedules } from '../../shared/plans/schedules.ts'
import type { Job, Timing } from '../../shared/queue/port.ts'
import { tickId } from '../../shared/queue/schedule-times.ts'
import { createIdempotency } from '../../shared/store/idempotency.ts'
import { createPlanScheduleStore } from '../../shared/store/plan-schedules.ts'
import { createPlans } from '../../shared/store/plans.ts'
import type { TenantId } from '../../shared/tenant.ts'
import { refusalOf, useStore } from '../flows/setup.ts'
import { stepOf } from './calls-setup.ts'

const PLAN = { title: 'Report', steps: [stepOf('a')] }

describe('the schedules of plans', () => {
  const opened = useStore()

  /** The schedules of one process, a queue that notes what it is told, and a tenant of this test. */
  function open() {
    const tenant = newId('sess') as string as TenantId
    const plans: Plans = createPlans(opened.store)
    const told: [string, Timing | undefined][] = []
    const jobs: Job[] = []
    const state = { isQueueAway: false }
    const tell = async (name: string, timing: Timing | undefined) => {
      if (state.isQueueAway) throw new AppError('unavailable', 'the queue does not answer')
      told.push([name, timing])
    }
    const schedules = new PlanSchedules({
      plans,
      queue: { add: async (job) => void jobs.push(job) },
      idempotency: createIdempotency(opened.store),
      now: () => new Date(),
      store: createPlanScheduleStore(opened.store),
      schedules: {
        put: (_tenant, name, timing) => tell(name, timing),
        remove: (_tenant, name) => tell(name, undefined),
      },
    })
    const fire = (name: string, at: number) =>
      schedules.fire({ kind: 'schedule', tenant, id: tickId(tenant, { name, at }) })
    const stored = async (): Promise<(PlanRecord | undefined)[]> => {
      const { plans: heads } = await plans.list(tenant, { limit: 200 })
      return Promise.all(heads.map(({ plan_id }) => plans.get(tenant, plan_id)))
    }
    return { tenant, schedules, told, jobs, state, fire, stored }
  }

  it('tell the queue of what is stored and removed', async () => {
    const { tenant, schedules, told } = open()
    await schedules.put(tenant, 'nightly', { cron: '0 3 * * *', timezone: 'Europe/Berlin', plan: PLAN })
    await schedules.put(tenant, 'nightly', { every_secs: 60, plan: PLAN })
    await schedules.remove(tenant, 'nightly')
    expect(told).to.deep.equal([
      ['nightly', { cron: '0 3 * * *', timezone: 'Europe/Berlin' }],
      ['nightly', { every_secs: 60 }],
      ['nightly', undefined],
    ])
    expect((await refusalOf(schedules.remove(tenant, 'nightly'))).status).to.equal(404)
  })

  it('are stored also when the queue is away, which is told later', async () => {
    const { tenant, schedules, told, state } = open()
    state.isQueueAway = true
    await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN })
    expect(told).to.deep.equal([])
    state.isQueueAway = false
    await schedules.restore()
    expect(told).to.deep.include(['often', { every_secs: 60 }])
    state.isQueueAway = true
    await schedules.remove(tenant, 'often')
    expect((await refusalOf(schedules.get(tenant, 'often'))).status).to.equal(404)
  })

  it('a wrong time or plan stores nothing', async () => {
    const { tenant, schedules, told } = open()
    const cyclic = { steps: [stepOf('a', 'a')] }
    expect((await refusalOf(schedules.put(tenant, 'x', { every_secs: 60, plan: cyclic }))).param).to.match(
      /^\/plan\/steps/,
    )
    expect((await refusalOf(schedules.put(tenant, 'x', { cron: 'now', plan: PLAN }))).param).to.equal('/cron')
    expect(await schedules.list(tenant, { limit: 50 })).to.deep.equal({ schedules: [], next_cursor: null })
    expect(told).to.deep.equal([])
  })

  it('submit the plan once for one tick, whoever fires it and however often', async () => {
    const { tenant, schedules, fire, stored, jobs } = open()
    await schedules.put(tenant, 'often', { every_secs: 60, plan: { ...PLAN, timeout_secs: 30 } })
    await Promise.all([fire('often', 60_000), fire('often', 60_000), fire('often', 60_000)])
    await fire('often', 120_000)
    const plans = await stored()
    expect(plans).to.have.length(2)
    expect(plans[0]).to.include({ title: 'Report', status: 'queued', timeout_secs: 30, subject: 'anonymous' })
    expect(new Set(jobs.map(({ id }) => id))).to.deep.equal(new Set(plans.map((plan) => plan?.plan_id)))
    expect(plans[0]?.plan_id).to.match(/^plan_00000000[0-9a-f]{24}$/)
  })

  it('a tick of a schedule that was deleted does nothing but remove it from the queue', async () => {
    const { fire, stored, told } = open()
    await fire('gone', 60_000)
    expect(await stored()).to.deep.equal([])
    expect(told).to.deep.equal([['gone', undefined]])
  })
})
