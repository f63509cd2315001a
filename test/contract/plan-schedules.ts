import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import {
  createPlanScheduleStore,
  MAX_SCHEDULES,
  PLAN_SCHEDULES,
  type PlanScheduleStore,
} from '../../shared/work/plans/store/plan-schedules.ts'
import { createTickRecords } from '../../shared/work/plans/store/tick-records.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import type { OpenStore } from './store.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const OLD = tenantId('t_old')

/** The tests of the schedules of plans, which every store passes. */
export function planScheduleContract(open: OpenStore): void {
  let schedules: PlanScheduleStore
  let now = Date.parse('2026-11-22T10:00:00.000Z')
  const store = useOpened(() => open(COLLECTIONS))
  before(async () => {
    schedules = createPlanScheduleStore(store, () => new Date(now))
  })

  const input = (name: string, everySecs = 60) => ({
    name,
    timing: { every_secs: everySecs },
    is_paused: false,
    plan: { steps: [{ id: '__proto__', prompt: 'Say $where {"a.b": 1}', depends_on: [] }], timeout_secs: 5 },
  })
  const namesOfAll = async () => {
    const names: string[] = []
    for await (const { tenant, schedule } of schedules.all()) names.push(`${tenant} ${schedule.name}`)
    return names
  }

  it('a schedule is read as it was stored, by its tenant only, and a second put replaces it', async () => {
    const first = await schedules.put(TENANT, input('nightly'))
    const times = { created_at: '2026-11-22T10:00:00.000Z', updated_at: '2026-11-22T10:00:00.000Z' }
    expect(first).to.deep.equal({ ...input('nightly'), ...times })
    expect(await schedules.get(TENANT, 'nightly')).to.deep.equal(first)
    expect(await schedules.get(OTHER, 'nightly')).to.equal(undefined)
    now += 1_000
    const cron = { ...input('nightly'), timing: { cron: '0 3 * * *', timezone: 'Europe/Berlin' } }
    const second = await schedules.put(TENANT, cron)
    expect(second).to.deep.equal({ ...cron, ...times, updated_at: '2026-11-22T10:00:01.000Z' })
    expect(await schedules.get(TENANT, 'nightly')).to.deep.equal(second)
  })

  it('one that was stored before there was a pause is not paused', async () => {
    const { is_paused: _none, ...old } = input('old')
    const times = { created_at: '2026-11-22T10:00:00.000Z', updated_at: '2026-11-22T10:00:00.000Z' }
    await store.collection(PLAN_SCHEDULES).insert(OLD, { ...old, ...times })
    expect(await schedules.get(OLD, 'old')).to.deep.equal({ ...input('old'), ...times })
    expect(await schedules.list(OLD, { limit: 1 })).to.deep.equal([{ ...input('old'), ...times }])
  })

  it('the schedules of a tenant are listed by name, in pages; those of all tenants for the restart', async () => {
    for (const name of ['b', 'a.1', 'C']) await schedules.put(TENANT, input(name))
    await schedules.put(OTHER, input('b'))
    const names = async (tenant: TenantId, query: { limit: number; after?: string }) =>
      (await schedules.list(tenant, query)).map(({ name }) => name)
    expect(await names(TENANT, { limit: 2 })).to.deep.equal(['C', 'a.1'])
    expect(await names(TENANT, { limit: 200, after: 'a.1' })).to.deep.equal(['b', 'nightly'])
    expect(await names(OTHER, { limit: 200 })).to.deep.equal(['b'])
    expect(await namesOfAll()).to.deep.equal(['t_1 C', 't_1 a.1', 't_1 b', 't_1 nightly', 't_2 b'])
  })

  it('a removed schedule is gone for its tenant only', async () => {
    expect(await schedules.remove(TENANT, 'b')).to.equal(true)
    expect(await schedules.remove(TENANT, 'b')).to.equal(false)
    expect(await schedules.get(OTHER, 'b')).to.not.equal(undefined)
    expect(await namesOfAll()).to.deep.equal(['t_1 C', 't_1 a.1', 't_1 nightly', 't_2 b'])
  })

  it('a tenant has at most 100 schedules; each of them can still be replaced', async () => {
    const full = tenantId('t_full')
    for (let n = 0; n < MAX_SCHEDULES; n++) await schedules.put(full, input(`s${n}`))
    const cause = await schedules.put(full, input('one-more')).catch((error: unknown) => error)
    expect(cause).to.be.instanceOf(AppError).and.include({ kind: 'conflict' })
    expect(await schedules.get(full, 'one-more')).to.equal(undefined)
    const all = (await namesOfAll()).filter((name) => name.startsWith('t_full '))
    expect(new Set(all).size).to.equal(MAX_SCHEDULES)
    expect(all).to.have.length(MAX_SCHEDULES)
    expect(await schedules.put(full, input('s5', 9))).to.deep.include({ timing: { every_secs: 9 } })
    await schedules.put(TENANT, input('one-more'))
  })

  it('of two ticks that want to be the last one at the same moment, one becomes it', async () => {
    const tenant = 't_claims' as TenantId
    const ticks = createTickRecords(store)
    const claimOf = (planId: string, lastId: string | null) => ({ planId, lastId, untilMs: 5 })
    const claim = (planId: string, lastId: string | null) => ticks.claim(tenant, 'often', claimOf(planId, lastId))
    const won = await Promise.all(['plan_1', 'plan_2', 'plan_3'].map((planId) => claim(planId, null)))
    expect(won.filter(Boolean)).to.have.length(1)
    const { last_plan_id: first, claimed_until_ms } = await ticks.getClaimed(tenant, 'often')
    expect([first, claimed_until_ms]).to.deep.equal([`plan_${won.indexOf(true) + 1}`, 5])
    expect(await claim(first ?? '', null), 'the same tick again').to.equal(true)
    expect(await claim('plan_4', null), 'one that has seen no plan').to.equal(false)
    expect(await claim('plan_4', first)).to.equal(true)
    await ticks.release(tenant, 'often', claimOf(first ?? '', null))
    expect((await ticks.getClaimed(tenant, 'often')).last_plan_id, 'only the last one is taken back').to.equal('plan_4')
    await ticks.release(tenant, 'often', claimOf('plan_4', first))
    expect(await ticks.getClaimed(tenant, 'often')).to.include({ last_plan_id: first, claimed_until_ms: 0 })
  })
}
