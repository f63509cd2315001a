import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { createIdempotency, type JoinableKeys } from '../../shared/platform/store/idempotency.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import type { OpenStore } from './store.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const RESERVED = { state: 'reserved' }

/** The tests of idempotency keys, which every store passes. */
export function idempotencyContract(open: OpenStore): void {
  let idempotency: JoinableKeys
  let clock = Date.now()
  let keys = 0
  const newUse = () => ({ operation: 'flow_run', key: `key ${++keys}` })
  const store = useOpened(() => open(COLLECTIONS, () => clock))
  before(async () => {
    idempotency = createIdempotency(store)
  })

  it('D6.6: a key stands for its first execution; the same request gets its id, another one a mismatch', async () => {
    const use = newUse()
    expect(await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'one' })).to.deep.equal(RESERVED)
    expect(await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'two' })).to.deep.equal({
      state: 'taken',
      id: 'one',
    })
    expect(await idempotency.reserve(TENANT, { ...use, hash: 'x', id: 'two' })).to.deep.equal({ state: 'mismatch' })
    expect(await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'one' })).to.deep.equal(RESERVED)
  })

  it('a key is separate in each tenant and for each operation', async () => {
    const use = newUse()
    const request = { ...use, hash: 'h', id: 'one' }
    expect(await idempotency.reserve(TENANT, request)).to.deep.equal(RESERVED)
    expect(await idempotency.reserve(OTHER, { ...request, id: 'two' })).to.deep.equal(RESERVED)
    const plan = { ...request, operation: 'plan_submit', id: 'three' }
    expect(await idempotency.reserve(TENANT, plan)).to.deep.equal(RESERVED)
  })

  it('of 30 requests with one key one reserves it, and all others get its id', async () => {
    const use = newUse()
    const other = createIdempotency(store)
    const all = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        (i % 2 ? idempotency : other).reserve(TENANT, { ...use, hash: 'h', id: `${i}` }),
      ),
    )
    const winner = all.findIndex(({ state }) => state === 'reserved')
    expect(all.filter(({ state }) => state === 'reserved')).to.have.length(1)
    for (const [i, each] of all.entries())
      if (i !== winner) expect(each).to.deep.equal({ state: 'taken', id: `${winner}` })
  })

  it('of several that replace a lost execution one succeeds', async () => {
    const use = newUse()
    await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'lost' })
    const replace = (to: string, from = 'lost') => idempotency.replace(TENANT, { ...use, from, to })
    const won = await Promise.all(['a', 'b', 'c', 'd'].map((to) => replace(to)))
    expect(won.filter(Boolean)).to.have.length(1)
    const id = ['a', 'b', 'c', 'd'][won.indexOf(true)] ?? ''
    expect(await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'x' })).to.deep.equal({ state: 'taken', id })
    expect(await idempotency.reserve(TENANT, { ...use, hash: 'y', id: 'x' })).to.deep.equal({ state: 'mismatch' })
    expect(await replace(id)).to.equal(true)
    expect(await replace('late')).to.equal(false)
    expect(await idempotency.replace(TENANT, { ...newUse(), from: 'lost', to: 'x' })).to.equal(false)
  })

  it('a key is freed only by the execution that it stands for', async () => {
    const use = newUse()
    await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'one' })
    await idempotency.release(TENANT, { ...use, id: 'two' })
    await idempotency.release(OTHER, { ...use, id: 'one' })
    expect((await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'two' })).state).to.equal('taken')
    await idempotency.release(TENANT, { ...use, id: 'one' })
    await idempotency.release(TENANT, { ...use, id: 'one' })
    expect(await idempotency.reserve(TENANT, { ...use, hash: 'other', id: 'two' })).to.deep.equal(RESERVED)
  })

  it('D36.5: a key is not freed once a request has joined its execution, and not joined once it was freed', async () => {
    const [joined, freed] = [newUse(), newUse()]
    for (const use of [joined, freed]) await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'one' })
    expect(await idempotency.join(TENANT, { ...joined, id: 'other' })).to.equal(false)
    for (const time of ['first', 'again'])
      expect(await idempotency.join(TENANT, { ...joined, id: 'one' }), time).to.equal(true)
    for (const use of [joined, freed]) expect(await idempotency.release(TENANT, { ...use, id: 'other' })).to.equal(true)
    expect(await idempotency.release(TENANT, { ...joined, id: 'one' })).to.equal(false)
    expect(await idempotency.release(TENANT, { ...freed, id: 'one' })).to.equal(true)
    expect(await idempotency.join(TENANT, { ...freed, id: 'one' })).to.equal(false)
    const again = { hash: 'h', id: 'two' }
    expect(await idempotency.reserve(TENANT, { ...joined, ...again })).to.deep.equal({ state: 'taken', id: 'one' })
    for (const round of [1, 2, 3]) {
      const use = newUse()
      await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'one' })
      const both = [idempotency.join(TENANT, { ...use, id: 'one' }), idempotency.release(TENANT, { ...use, id: 'one' })]
      expect((await Promise.all(both)).filter(Boolean), `round ${round}`).to.have.length(1)
    }
  })

  it('D6.6: a key is forgotten 24 hours after it was reserved, also when its execution was replaced', async () => {
    const use = newUse()
    await idempotency.reserve(TENANT, { ...use, hash: 'h', id: 'one' })
    clock += 80_000_000
    expect(await idempotency.replace(TENANT, { ...use, from: 'one', to: 'two' })).to.equal(true)
    clock += 6_399_999
    expect((await idempotency.reserve(TENANT, { ...use, hash: 'x', id: 'three' })).state).to.equal('mismatch')
    clock += 1
    expect(await idempotency.reserve(TENANT, { ...use, hash: 'x', id: 'three' })).to.deep.equal(RESERVED)
  })
}
