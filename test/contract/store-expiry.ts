import { expect } from 'chai'
import type { CollectionSpec, Store } from '../../shared/platform/store/port.ts'
import { tenantId } from '../support/tenant.ts'

const TENANT = tenantId('t_1')

const KEYS: CollectionSpec = { name: 'keys', key: ['route', 'key'], ttlSecs: 86_400 }
const RECORDS: CollectionSpec = {
  name: 'records',
  key: ['id'],
  unique: [['alias']],
  order: { within: ['kind'], by: ['id'], direction: 'ascending' },
  filters: ['status'],
  expiresBy: 'until_ms',
}
/** The collections that `expiryContract` uses. */
export const EXPIRING: readonly CollectionSpec[] = [KEYS, RECORDS]

export type TestClock = { now(): number; advance(ms: number): void }

/** The tests of documents that expire, which every store passes. */
export function expiryContract(store: () => Store, clock: TestClock): void {
  let count = 0
  const record = (lifeMs: number) => {
    const id = `r${++count}`
    return { id, alias: `alias ${id}`, kind: 'run', status: 'ok', until_ms: clock.now() + lifeMs }
  }

  it('D6.6: an expired document is invisible at once, and its key can be used again', async () => {
    const keys = store().collection(KEYS)
    const doc = { route: 'run', key: `k${++count}`, body_hash: 'h' }
    await keys.insert(TENANT, doc)
    clock.advance(86_399_000)
    expect(await keys.insert(TENANT, doc)).to.equal(false)
    expect(await keys.replaceIfVersion(TENANT, { doc: { ...doc, state: 'finished' }, version: 1 })).to.equal(true)
    clock.advance(1_001)
    expect(await keys.get(TENANT, { route: doc.route, key: doc.key })).to.equal(undefined)
    expect(await keys.replaceIfVersion(TENANT, { doc, version: 2 })).to.equal(false)
    expect(await keys.delete(TENANT, { route: doc.route, key: doc.key })).to.equal(false)
    await keys.deleteMany(TENANT, [{ route: doc.route, key: doc.key }])
    expect(await keys.insert(TENANT, doc)).to.equal(true)
    expect(await keys.get(TENANT, { route: doc.route, key: doc.key })).to.deep.equal({ doc, version: 1 })
  })

  it('a document with an expiry of its own is in no answer from that moment on, and its key is free', async () => {
    const records = store().collection(RECORDS)
    const [short, long] = [record(1_000), record(60_000)]
    for (const doc of [short, long]) expect(await records.insert(TENANT, doc)).to.equal(true)
    const idsOf = async (where: Record<string, string>) =>
      (await records.page(TENANT, { where: { kind: 'run', ...where }, limit: 9 })).map(({ doc }) => doc['id'])
    clock.advance(999)
    expect(await idsOf({})).to.deep.equal([short.id, long.id])
    clock.advance(1)
    expect(await idsOf({})).to.deep.equal([long.id])
    expect(await idsOf({ status: 'ok' })).to.deep.equal([long.id])
    expect(await records.get(TENANT, { id: short.id })).to.equal(undefined)
    expect(await records.get(TENANT, { alias: short.alias })).to.equal(undefined)
    expect(await records.replaceIfVersion(TENANT, { doc: record(1), version: 1 })).to.equal(false)
    expect(await records.delete(TENANT, { id: short.id })).to.equal(false)
    const again = { ...short, until_ms: clock.now() + 1 }
    expect(await records.insert(TENANT, again)).to.equal(true)
    expect((await records.get(TENANT, { id: short.id }))?.doc).to.deep.equal(again)
  })

  it('a replacement makes a document expire later, earlier or at once', async () => {
    const records = store().collection(RECORDS)
    const doc = record(1_000)
    await records.insert(TENANT, doc)
    const expire = (lifeMs: number, version: number) =>
      records.replaceIfVersion(TENANT, { doc: { ...doc, until_ms: clock.now() + lifeMs }, version })
    expect(await expire(5_000, 1)).to.equal(true)
    clock.advance(4_999)
    expect((await records.get(TENANT, { id: doc.id }))?.version).to.equal(2)
    expect(await expire(0, 2)).to.equal(true)
    expect(await records.get(TENANT, { id: doc.id })).to.equal(undefined)
    expect(await expire(5_000, 3)).to.equal(false)
  })

  it('a document without its expiry is refused', async () => {
    const records = store().collection(RECORDS)
    const { until_ms: _, ...doc } = record(1)
    expect(await records.insert(TENANT, doc).catch(String)).to.include('records.until_ms is not a number')
    expect(await records.get(TENANT, { id: doc.id })).to.equal(undefined)
  })
}
