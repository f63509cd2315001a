import { expect } from 'chai'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { LineNews, RunPlaces } from '../../shared/tenancy/limits/port.ts'
import { BATCH_ITEMS } from '../../shared/tenancy/limits/start-order.ts'
import { tenantId } from '../support/tenant.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const CUSTOMERS = [undefined, 'c_1', 'c_2', BATCH_ITEMS]

/** The tests of the places of runs, which those in memory and those in Redis pass. */
export function placesContract(open: () => RunPlaces): void {
  let places: RunPlaces
  beforeEach(() => {
    places = open()
  })
  afterEach(async () => {
    const ids = Array.from({ length: 20 }, (_, i) => `run_${i}`)
    for (const tenant of [TENANT, OTHER]) {
      await look({ left: ids }, tenant)
      for (const runId of ids)
        for (const customer of CUSTOMERS) await places.release({ tenant, runId, ...(customer && { customer }) })
    }
  })

  const placed = (runId: string, customer?: string) => ({ tenant: TENANT, runId, customer })
  const take = async (runId: string, limit: number | null, tenant: TenantId = TENANT) => {
    const { place } = await places.take({ tenant, runId }, { tenant: limit, customer: null })
    return place
  }
  const takeTurn = async (runId: string, customer?: string, weight = 1) => {
    const { place } = await places.take(placed(runId, customer), { tenant: 9, customer: null, weight }, 'batch')
    return place
  }
  const look = (news: Partial<LineNews>, tenant: TenantId = TENANT) =>
    places.look(tenant, { process: 'p_1', joined: [], left: [], customers: [], ...news })
  const start = (runId: string, customer?: string) => ({
    ...{ runId, priority: 'batch' as const, waitedMs: 0 },
    ...(customer !== undefined && { customer }),
  })

  it('of many runs that start at the same time exactly the limit gets a place, in each tenant', async () => {
    const takeAll = (tenant: TenantId) => Promise.all(Array.from({ length: 20 }, (_, i) => take(`run_${i}`, 7, tenant)))
    const taken = await Promise.all([takeAll(TENANT), takeAll(OTHER)])
    expect(taken.map((each) => each.filter((place) => place === 'taken').length)).to.deep.equal([7, 7])
    expect(await places.count(TENANT)).to.equal(7)
  })

  it('a place that is given back is free, and a run that has one keeps it', async () => {
    expect([await take('run_1', 1), await take('run_1', 1), await take('run_2', 1)]).to.deep.equal([
      'taken',
      'taken',
      'full',
    ])
    await places.release(placed('run_1'))
    expect(await take('run_2', 1)).to.equal('taken')
  })

  it('a place that was lost is held again by its renewal, among those of its customer, too', async () => {
    await places.renew(TENANT, [placed('run_1'), placed('run_2', 'c_1')])
    expect(await places.count(TENANT)).to.equal(2)
    expect(await take('run_3', 2)).to.equal('full')
    const { atWork, atWorkOf } = await look({ customers: ['c_1', 'c_2'] })
    expect([atWork, [...atWorkOf]]).to.deep.equal([
      2,
      [
        ['c_1', 1],
        ['c_2', 0],
      ],
    ])
  })

  it("a customer's runs are limited beside the tenant's, and a place is given back of both", async () => {
    const takeOf = async (runId: string, customer: string) => {
      const { place } = await places.take(placed(runId, customer), { tenant: 3, customer: 1 })
      return place
    }
    expect([await takeOf('run_1', 'c_1'), await takeOf('run_2', 'c_1'), await takeOf('run_3', 'c_2')]).to.deep.equal([
      'taken',
      'customer_full',
      'taken',
    ])
    await places.release(placed('run_1', 'c_1'))
    expect([await takeOf('run_2', 'c_1'), await places.count(TENANT)]).to.deep.equal(['taken', 2])
  })

  it('nobody passes those that wait, but one whose turn it is, and one that has a place', async () => {
    await take('run_1', 9)
    const { starts } = await look({ joined: [start('run_2'), start('run_3')] })
    expect(starts.map(({ runId, process }) => [runId, process])).to.have.deep.members([
      ['run_2', 'p_1'],
      ['run_3', 'p_1'],
    ])
    const waits = () => Promise.all(['run_1', 'run_2', 'run_3'].map((runId) => places.isWaiting(TENANT, runId)))
    expect(await waits()).to.deep.equal([false, true, true])
    expect([await take('run_1', 9), await take('run_4', 9), await takeTurn('run_2')]).to.deep.equal([
      'taken',
      'behind',
      'taken',
    ])
    expect([await waits(), await places.isWaiting(OTHER, 'run_3')]).to.deep.equal([[false, false, true], false])
    const after = await look({ left: ['run_3'] })
    expect(after.starts).to.deep.equal([])
    expect(after.lowerAt).to.be.greaterThanOrEqual(0).and.at.most(after.now)
    expect(await take('run_4', 9)).to.equal('taken')
  })

  it('another process cannot take a start out of the line, and takes it over with the time it has waited', async () => {
    const before = await look({ joined: [start('run_1')] })
    await look({ process: 'p_2', left: ['run_1'] })
    const { starts } = await look({ process: 'p_2', joined: [{ ...start('run_1'), waitedMs: 60_000 }] })
    expect(starts.map(({ runId, process }) => [runId, process])).to.deep.equal([['run_1', 'p_2']])
    expect(starts[0]?.since).to.be.below(before.now - 50_000)
  })

  it('the turns of each customer are counted while it waits, by its weight, and one that comes later begins with the least of the others', async () => {
    await look({ joined: ['run_1', 'run_2', 'run_3', 'run_4'].map((id, at) => start(id, at === 3 ? 'c_2' : 'c_1')) })
    for (const runId of ['run_1', 'run_2']) await takeTurn(runId, 'c_1', 4)
    await takeTurn('run_4', 'c_2')
    const { turnsOf } = await look({ joined: [start('run_5', 'c_2'), start('run_6')] })
    expect(Object.fromEntries(turnsOf)).to.deep.equal({ c_1: 0.5, c_2: 0.5, '': 0.5 })
  })

  it('D55.2: of a tenant with one place no start that yields takes it while it is kept free, or counts as waiting for others', async () => {
    const takeItem = async () => {
      const limits = { tenant: 1, customer: 1, yields: true }
      return (await places.take(placed('run_1', BATCH_ITEMS), limits, 'batch')).place
    }
    await take('run_2', 1)
    await look({ joined: [start('run_1', BATCH_ITEMS), start('run_3')] })
    const refused = await places.take(placed('run_4'), { tenant: 1, customer: null })
    expect([refused.place, refused.waiting]).to.deep.equal(['full', 1])
    await places.keepFree(TENANT, 60_000)
    expect(await takeItem()).to.equal('full')
    await places.release(placed('run_2'))
    expect([await takeItem(), (await look({})).isKeptFree]).to.deep.equal(['customer_full', true])
    await places.keepFree(TENANT, 0)
    expect([await takeItem(), (await look({})).isKeptFree]).to.deep.equal(['taken', false])
    await places.keepFree(TENANT, 60_000)
    expect(await takeItem(), 'one that has it keeps it').to.equal('taken')
  })

  it('how long runs take of late is known to all who ask', async () => {
    for (const ms of [1_000, 2_000]) await places.release(placed('run_1'), ms)
    const { runMs } = await places.take(placed('run_2'), { tenant: 1, customer: null })
    expect([runMs, (await look({})).runMs]).to.deep.equal([1_200, 1_200])
  })
}
