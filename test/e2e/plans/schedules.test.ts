import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { parsePage } from '../../ops/prometheus-text.ts'
import { step, stepIdOf, usePlans } from '../../support/plans.ts'
import { inBothForms } from '../../support/product.ts'
import { until } from '../../support/until.ts'

type Shown = { last_plan_id: string | null; skipped_ticks: number; last_skip: { at: string; reason: string } | null }
type Planned = { id: string; title?: string; status: string; created_at: string }

const planned = (title: string) => ({ title, steps: [step('a')] })

inBothForms('schedules of plans', (startProduct, form) => {
  const bench = usePlans(startProduct, form, {
    SCHEDULE_LEAST_SECS: '1',
    MASTER_KEY: randomBytes(32).toString('base64'),
  })
  const { call, ended } = bench

  before(() => bench.product.model.otherwise((request) => `out of ${stepIdOf(request)}`))

  const put = (name: string, body: object) => call('PUT', `/plans/schedules/${name}`, body)
  const putEverySecond = async (name: string, title: string) => {
    const { status, text } = await put(name, { every_secs: 1, plan: planned(title) })
    expect(status, text).to.equal(200)
  }
  /** The sum over all processes. */
  const counted = async (series: string): Promise<number> => {
    const pages = await Promise.all(
      bench.product.opsUrls.map(async (url) => parsePage(await (await fetch(`${url}/metrics`)).text())),
    )
    return pages.reduce((sum, { value }) => sum + (value(series) || 0), 0)
  }
  const remove = (name: string) => call('DELETE', `/plans/schedules/${name}`)
  /** The plans with this title, newest first. */
  const fired = async (title: string) => {
    const { body } = await call('GET', '/plans?limit=200')
    return (body as { plans: Planned[] }).plans.filter((plan) => plan.title === title)
  }
  const hasFired = (title: string, times: number) =>
    until(
      async () => {
        const plans = await fired(title)
        return plans.length >= times && plans
      },
      { what: `${times} plans with the title ${title}`, everyMs: 50 },
    )

  it('D12.2: every second submits one plan for each tick, and it is carried out', async () => {
    const startedAt = Date.now()
    await putEverySecond('each', 'each')
    const [newest] = await hasFired('each', 2)
    expect((await remove('each')).body).to.deep.equal({ status: 'deleted' })
    const { length } = await fired('each')
    // Ticks are the whole seconds since 1970.
    expect(length).to.be.at.most(Math.floor(Date.now() / 1_000) - Math.floor(startedAt / 1_000))
    expect(await ended(newest?.id ?? '')).to.deep.include({ status: 'done', step_outputs: { a: 'out of a' } })
  })

  it('D12.3: a tick is skipped while the plan before has not ended, and above the rate of the tenant; the schedule shows it', async () => {
    const held = Promise.withResolvers<void>()
    bench.product.model.otherwise(async (request) => {
      await held.promise
      return `out of ${stepIdOf(request)}`
    })
    const shown = async () => (await call('GET', '/plans/schedules/slow')).body as Shown
    await putEverySecond('slow', 'slow')
    const isSkipped = async () => (await shown()).last_skip?.reason === 'plan_not_ended'
    await until(isSkipped, { what: 'a tick to be skipped', everyMs: 100 })
    const plans = await fired('slow')
    expect(plans.map(({ id }) => id)).to.include((await shown()).last_plan_id)
    const { skipped_ticks } = await shown()
    const hasSkippedMore = async () => (await shown()).skipped_ticks >= skipped_ticks + 2
    await until(hasSkippedMore, { what: 'two more ticks to be skipped', everyMs: 100 })
    expect(await fired('slow')).to.deep.equal(plans)

    await call('PUT', '/config/limits', { requests_per_minute: 1 })
    const isUsedUp = async () => (await call('GET', '/tools')).status === 429
    await until(isUsedUp, { what: 'the rate of the tenant to be used up' })
    held.resolve()
    const skipped = () => counted('agent_engine_schedule_ticks_total{outcome="rate_limit"}')
    await until(async () => (await skipped()) > 0, { what: 'a tick above the rate', everyMs: 100 })
    await call('PUT', '/config/limits', {})
    await remove('slow')
    expect(await counted('agent_engine_schedule_ticks_total{outcome="plan_not_ended"}')).to.be.at.least(1)
  })
})
