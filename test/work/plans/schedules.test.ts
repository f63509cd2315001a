import { expect } from 'chai'
import { createPlanScheduleStore } from '../../../shared/work/plans/store/plan-schedules.ts'
import { useTestStore } from '../../support/test-store.ts'
import { refusalOf } from '../flows/setup.ts'
import { stepOf } from './calls-setup.ts'
import { LEAST_SECS, openSchedules, PLAN } from './schedule-setup.ts'

const NO_TICKS = { last_plan_id: null, skipped_ticks: 0, last_skip: null, last_plan: null }

describe('the schedules of plans', () => {
  const opened = useTestStore()
  const open = () => openSchedules(opened.store)

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
    const refusal = await refusalOf(schedules.remove(tenant, 'nightly'))
    expect(refusal.status).to.equal(404)
    expect(refusal.message).to.include('no schedule nightly').and.include('GET /plans/schedules')
  })

  it('are shown as they are stored, the same by each way, with what has become of their ticks', async () => {
    const { tenant, schedules } = open()
    const put = await schedules.put(tenant, 'a', { cron: '0 3 * * *', plan: { ...PLAN, unknown: 1 } as typeof PLAN })
    expect(put).to.deep.include({ name: 'a', cron: '0 3 * * *', timezone: 'UTC', plan: PLAN, ...NO_TICKS })
    expect(put.updated_at).to.equal(put.created_at)
    expect(await schedules.get(tenant, 'a')).to.deep.equal(put)
    expect(await schedules.list(tenant, { limit: 1 })).to.deep.equal({ schedules: [put], next_cursor: null })
    expect((await refusalOf(schedules.get(tenant, 'b'))).status).to.equal(404)
  })

  it('are shown with their next five ticks as the queue has them', async () => {
    const { tenant, schedules, state } = open()
    state.now = new Date('2026-10-24T12:00:00.000Z')
    const nightly = { cron: '30 2 * * *', timezone: 'Europe/Berlin', plan: PLAN }
    const { paused, next_ticks } = await schedules.put(tenant, 'nightly', nightly)
    expect(paused).to.equal(false)
    expect(next_ticks).to.deep.equal([
      '2026-10-25T00:30:00.000Z',
      '2026-10-26T01:30:00.000Z',
      '2026-10-27T01:30:00.000Z',
      '2026-10-28T01:30:00.000Z',
      '2026-10-29T01:30:00.000Z',
    ])
    const slowed = { name: 'slowed', timing: { every_secs: 1 }, is_paused: false, plan: PLAN }
    await createPlanScheduleStore(opened.store).put(tenant, slowed)
    const [first, second] = (await schedules.get(tenant, 'slowed')).next_ticks
    expect([first, second]).to.deep.equal(['2026-10-24T12:00:10.000Z', '2026-10-24T12:00:20.000Z'])
  })

  it('are shown with the plan that they have submitted last as it is now, as long as it is kept', async () => {
    const { tenant, schedules, records, plans, fire } = open()
    for (const name of ['a', 'b']) await schedules.put(tenant, name, { every_secs: 60, plan: PLAN })
    await fire('a', 60_000)
    const { last_plan_id, last_plan } = await schedules.get(tenant, 'a')
    expect(last_plan).to.deep.include({ id: last_plan_id, title: 'Report', status: 'queued' })
    await plans.change(tenant, last_plan_id ?? '', (plan) => ({
      ...plan,
      status: 'failed',
      error: 'the store was away',
    }))
    await records.claim(tenant, 'b', { planId: `plan_${'0'.repeat(32)}`, lastId: null, untilMs: 1 })
    const { schedules: listed } = await schedules.list(tenant, { limit: 5 })
    expect(listed[0]?.last_plan).to.deep.include({ id: last_plan_id, status: 'failed', error: 'the store was away' })
    expect(listed[1]).to.deep.include({ last_plan_id: `plan_${'0'.repeat(32)}`, last_plan: null })
  })

  it('D12.4: that are paused are taken from the queue and have no ticks, also after a restart, until they are stored without', async () => {
    const { tenant, schedules, told } = open()
    await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN })
    const paused = await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN, paused: true })
    expect(paused).to.deep.include({ paused: true, next_ticks: [], every_secs: 60, plan: PLAN })
    await schedules.restore()
    expect(told.filter(([name]) => name === 'often')).to.deep.equal([
      ['often', { every_secs: 60 }],
      ['often', undefined],
    ])
    expect(await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN })).to.include({ paused: false })
    expect(told.at(-1)).to.deep.equal(['often', { every_secs: 60 }])
  })

  it('are listed by name in pages, each with its own ticks', async () => {
    const { tenant, schedules, records } = open()
    for (const name of ['c', 'a', 'b']) await schedules.put(tenant, name, { every_secs: 60, plan: PLAN })
    for (const name of ['0', 'b', 'bb', 'd'])
      await records.claim(tenant, name, { planId: `plan_${name}`, lastId: null, untilMs: 1 })
    const first = await schedules.list(tenant, { limit: 2 })
    const shown = (page: typeof first) => page.schedules.map((each) => [each.name, each.last_plan_id])
    expect(shown(first)).to.deep.equal([
      ['a', null],
      ['b', 'plan_b'],
    ])
    const rest = await schedules.list(tenant, { limit: 2, cursor: first.next_cursor ?? '' })
    expect(shown(rest)).to.deep.equal([['c', null]])
    expect(rest.next_cursor).to.equal(null)
    expect(await refusalOf(schedules.list(tenant, { limit: 2, cursor: 'x' }))).to.include({ param: '/cursor' })
  })

  it('are listed as many at a time as are asked for', async () => {
    const { tenant, schedules } = open()
    const names = Array.from({ length: 13 }, (_, i) => `s${String(i).padStart(2, '0')}`)
    for (const name of names) await schedules.put(tenant, name, { every_secs: 60, plan: PLAN })
    for (const limit of [1, 5, 6, 12, 13]) {
      const page = await schedules.list(tenant, { limit })
      expect(page.schedules.map(({ name }) => name)).to.deep.equal(names.slice(0, limit))
      expect(page.next_cursor === null, `a page of ${limit} is the last`).to.equal(limit === 13)
    }
  })

  it('with long plans are listed in shorter pages, none twice and none left out', async () => {
    const { tenant, schedules } = open()
    const names = Array.from({ length: 12 }, (_, i) => `s${String(i).padStart(2, '0')}`)
    const plan = { steps: [{ ...stepOf('a'), prompt: 'x'.repeat(250_000) }] }
    for (const name of names) await schedules.put(tenant, name, { every_secs: 60, plan })
    const pages: string[][] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await schedules.list(tenant, { limit: 200, ...(cursor !== undefined && { cursor }) })
      expect(JSON.stringify(page).length).to.be.below(2 * 1024 * 1024)
      pages.push(page.schedules.map(({ name }) => name))
      cursor = page.next_cursor
    }
    expect(pages.flat()).to.deep.equal(names)
    expect(pages.length).to.be.above(1)
    for (const page of pages) expect(page).to.not.be.empty
  })

  it('are stored also when the queue is away, which is told later', async () => {
    const { tenant, schedules, told, state } = open()
    state.isQueueAway = true
    await schedules.put(tenant, 'often', { every_secs: 60, plan: PLAN })
    expect(told).to.deep.equal([])
    expect(await refusalOf(schedules.restore())).to.include({ status: 503 })
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
    const often = await refusalOf(schedules.put(tenant, 'x', { every_secs: LEAST_SECS - 1, plan: PLAN }))
    expect(often).to.include({ status: 400, param: '/every_secs' })
    expect(often.message).to.include('from 10 to')
    expect(await schedules.list(tenant, { limit: 50 })).to.deep.equal({ schedules: [], next_cursor: null })
    expect(told).to.deep.equal([])
  })

  it('the plan of a schedule has at most 256 KB as JSON', async () => {
    const { tenant, schedules, told } = open()
    const planOf = (bytes: number) => {
      const steps = [stepOf('a')].map((step) => ({ ...step, prompt: '€' }))
      const rest = bytes - Buffer.byteLength(JSON.stringify({ steps }))
      return { steps: steps.map((step) => ({ ...step, prompt: `€${'x'.repeat(rest)}` })) }
    }
    const refusal = await refusalOf(schedules.put(tenant, 'long', { every_secs: 60, plan: planOf(256 * 1024 + 1) }))
    expect(refusal).to.include({ status: 413, param: '/plan' })
    expect(refusal.message).to.include('at most 262144 bytes, not 262145')
    expect(told).to.deep.equal([])
    await schedules.put(tenant, 'long', { every_secs: 60, plan: planOf(256 * 1024) })
  })

  it('a pattern with seconds is put and restored alike, so that the queue changes nothing', async () => {
    const { tenant, schedules, told } = open()
    await schedules.put(tenant, 'seconds', { cron: '*/20 * * * * *', plan: PLAN })
    await schedules.restore()
    const [put, restored, ...others] = told.filter(([name]) => name === 'seconds')
    expect(put).to.deep.equal(['seconds', { cron: '*/20 * * * * *', timezone: 'UTC', least_secs: LEAST_SECS }])
    expect(restored).to.deep.equal(put)
    expect(others).to.deep.equal([])
  })

  it('one that was stored when its ticks could be more frequent is kept, and slowed down', async () => {
    const { tenant, schedules, told } = open()
    const store = createPlanScheduleStore(opened.store)
    await store.put(tenant, { name: 'old', timing: { every_secs: 1 }, is_paused: false, plan: PLAN })
    const cron = { cron: '* * * * * *', timezone: 'UTC' }
    await store.put(tenant, { name: 'old-cron', timing: cron, is_paused: false, plan: PLAN })
    expect(await schedules.get(tenant, 'old')).to.deep.include({ name: 'old', every_secs: 1 })
    await schedules.restore()
    expect(told).to.deep.include.members([
      ['old', { every_secs: LEAST_SECS }],
      ['old-cron', { ...cron, least_secs: LEAST_SECS }],
    ])
  })
})
