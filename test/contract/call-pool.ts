import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { type Parcel, type PoolBatch, PoolStore } from '../../shared/agent/providers/batch/pool/store.ts'
import { inSlices } from '../../shared/kernel/async/slices.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import type { OpenStore } from './store.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const expires_ms = Date.now() + 3_600_000
const GOOD = { status: 200, body: { text: 'good' } }

/** The tests of the calls that wait for vendors' batches (D58), which every store passes. */
export function callPoolContract(open: OpenStore): void {
  let pooled: PoolStore
  const store = useOpened(() => open(COLLECTIONS))
  before(async () => {
    pooled = new PoolStore(store)
  })

  const parcelOf = (batch_id: string, entered_ms: number): Parcel => ({
    ...{ batch_id, chunk: 0, wave: 0, pool: 'p_1', instance: 'main', calls: [batch_id], bytes: 1, entered_ms },
    ...{ until_ms: 2, expires_ms },
  })

  it('the parcels of a pool come in their order, however many; each has its calls, and is its tenant’s', async () => {
    const calls = [{ id: 'a', path: '/p', body: { text: 'ü' } }]
    const parcels = Array.from({ length: 1_003 }, (_, n) => parcelOf(`b_${n}`, n))
    const add = (parcel: Parcel) => pooled.addParcel(TENANT, parcel, JSON.stringify(calls))
    await inSlices(parcels.toReversed(), 100, add)
    await pooled.addParcel(TENANT, parcelOf('b_0', 7), '[]')
    await pooled.addParcel(OTHER, parcelOf('b_0', 7), '[]')
    expect(await pooled.parcels(TENANT, 'p_1')).to.deep.equal(parcels)
    const [first, second] = parcels
    if (!first || !second) return expect.fail('no parcels')
    expect(await pooled.callsOf(TENANT, first)).to.deep.equal(calls)
    expect(await pooled.withdraw(TENANT, first)).to.deep.equal({ ...first, until_ms: 0 })
    await pooled.removeParcels(TENANT, [...parcels.slice(2), second])
    expect(await pooled.parcels(TENANT, 'p_1')).to.deep.equal([{ ...first, until_ms: 0 }])
    expect([await pooled.parcel(TENANT, second), await pooled.withdraw(TENANT, second)]).to.deep.equal([
      undefined,
      undefined,
    ])
    expect(await pooled.callsOf(TENANT, second)).to.deep.equal([])
    expect(await pooled.parcels(OTHER, 'p_1')).to.have.length(1)
  })

  it('a number of a wave, and of a batch of a pool, is given once; only an open batch changes', async () => {
    const wave = {
      ...{ batch_id: 'w', chunk: 0, wave: 3, state: 'pooled' as const },
      vendor_id: null,
      at_ms: 1,
      calls: ['a'],
    }
    expect([
      await pooled.addWave(TENANT, wave, expires_ms),
      await pooled.addWave(TENANT, wave, expires_ms),
    ]).to.deep.equal([true, false])
    expect(await pooled.changeWave(TENANT, wave, { state: 'answered' })).to.equal(true)
    expect(await pooled.changeWave(TENANT, wave, { state: 'answered' })).to.equal(false)
    expect(await pooled.waves(TENANT, wave)).to.deep.equal([{ ...wave, state: 'answered' }])
    const batchOf = (number: number): PoolBatch => ({
      ...{ pool: 'p_2', number, state: 'open', mark: 'm', vendor_id: null, at_ms: 1, look_at_ms: 1, parcels: ['a'] },
      ...{ count: 1, first: 'a', next_most: 2, expires_ms },
    })
    for (const number of [0, 1, 2]) expect(await pooled.addSent(TENANT, batchOf(number))).to.equal(true)
    expect(await pooled.addSent(TENANT, batchOf(1))).to.equal(false)
    await pooled.changeSent(TENANT, batchOf(1), { state: 'answered' })
    await pooled.changeSent(TENANT, batchOf(1), { state: 'refused' })
    expect((await pooled.sent(TENANT, 'p_2')).map(({ number }) => number)).to.have.members([0, 2])
    expect((await pooled.recentlySent(TENANT, 'p_2')).map(({ number, state }) => `${number} ${state}`)).to.deep.equal([
      ...['2 open', '1 answered', '0 open'],
    ])
  })

  it('an answer that is there stays, and all of an owner are found', async () => {
    const owner = { batch_id: 'o', chunk: 1 }
    const answers = new Map(Array.from({ length: 1_003 }, (_, n) => [`c_${n}`, GOOD] as const))
    expect(
      await pooled.addAnswer(TENANT, owner, { call: 'c_0', answer: { status: 1, body: {} }, expires_ms }),
    ).to.equal(true)
    await pooled.addAnswers(TENANT, owner, { answers, expires_ms })
    expect(
      await pooled.addAnswer(TENANT, owner, { call: 'c_1', answer: { status: 1, body: {} }, expires_ms }),
    ).to.equal(false)
    const found = await pooled.answers(TENANT, owner)
    expect([found.size, found.get('c_0')?.status, found.get('c_1')]).to.deep.equal([1_003, 1, GOOD])
  })

  it('a pool is claimed by one, and what wakes it meanwhile is not lost', async () => {
    const { open: pools } = pooled
    const wake = (pool: string, due_ms: number) => pools.wake({ owner: TENANT, pool, instance: 'main' }, due_ms)
    await Promise.all([30, 10, 20].map((due) => wake('b', due)))
    await wake('a', 20)
    expect((await pools.due(9)).length).to.equal(0)
    const due = await pools.due(20)
    expect(due.map(({ pool, due_ms }) => [pool, due_ms])).to.deep.equal([
      ['b', 10],
      ['a', 20],
    ])
    const [b, a] = due
    if (!a || !b) return expect.fail('none is due')
    const claims = (await Promise.all([1, 2].map(() => pools.claim(b, 100)))).filter((claim) => claim !== undefined)
    expect(claims).to.have.length(1)
    await wake('b', 50)
    if (claims[0]) await pools.release(claims[0], 200)
    if (claims[0]) await pools.release(claims[0], undefined)
    const claimed = await pools.claim(a, 100)
    if (claimed) await pools.release(claimed, 40)
    const all = async () => (await pools.due(1_000)).map(({ pool, due_ms }) => [pool, due_ms])
    expect(await all()).to.deep.equal([
      ['a', 40],
      ['b', 50],
    ])
    for (const each of await pools.due(1_000)) {
      const last = await pools.claim(each, 100)
      if (last) await pools.release(last, undefined)
    }
    expect(await all()).to.deep.equal([])
  })
}
