import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { type Db, type Document, MongoClient } from 'mongodb'
import { COLLECTIONS } from '../../../../services/wiring/collections.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { canExpire, indexedFields } from '../../../../shared/platform/store/document.ts'
import { MongoCollection } from '../../../../shared/platform/store/mongo/collection.ts'
import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import type { Collection, CollectionSpec, Fields, Scalar } from '../../../../shared/platform/store/port.ts'
import { useOpened } from '../../../support/fixture.ts'
import { useMongo } from '../../../support/mongo.ts'
import { tenantId } from '../../../support/tenant.ts'

const GUIDE = new URL('../../../../deploy/README.md', import.meta.url)
const PROFILE_BYTES = 32 * 1024 * 1024

/** Fields whose documents count with numbers; the others are texts, which fit everywhere. */
const docOf = (spec: CollectionSpec, n: number): JsonObject => ({
  ...Object.fromEntries(indexedFields(spec).map((field) => [field, spec.total?.of === field ? n : `${field}-${n}`])),
  ...(spec.expiresBy !== undefined && { [spec.expiresBy]: Date.now() + 3_600_000 }),
})
const pick = (doc: JsonObject, fields: readonly string[]): Fields =>
  Object.fromEntries(fields.map((field) => [field, doc[field] as Scalar]))

/** Everything that the port can send for one collection: nothing else reaches MongoDB. */
async function useAll(spec: CollectionSpec, rows: Collection): Promise<void> {
  const [one, other] = [tenantId('one'), tenantId('other')]
  const docs = Array.from({ length: 6 }, (_, n) => docOf(spec, n))
  const [first = {}, second = {}, third = {}, ...more] = docs
  await rows.insert(one, first)
  await rows.insert(one, first) // Where documents expire, an expired one would make room.
  await rows.insert(one, second, { mayWriteUntil: () => performance.now() + 60_000 })
  await rows.insert(one, third, { durability: 'weak' })
  await Promise.all(more.map((doc) => rows.insert(other, doc)))
  await rows.insertMissing([
    { tenant: one, doc: first },
    { tenant: other, doc: second },
  ])
  for (const group of [spec.key, ...(spec.unique ?? [])]) {
    await rows.get(one, pick(first, group))
    await Promise.all(docs.flatMap((doc) => [one, other].map((tenant) => rows.get(tenant, pick(doc, group)))))
  }
  await rows.replaceIfVersion(one, { doc: first, version: 1 })
  await Promise.all(
    docs.flatMap((doc) => [one, other].map((tenant) => rows.replaceIfVersion(tenant, { doc, version: 9 }))),
  )
  await rows.update(one, { key: pick(second, spec.key), where: pick(second, spec.key), set: { other: 1 } })
  await useLists(spec, rows, first)
  await rows.delete(one, pick(first, spec.key))
  await rows.delete(other, pick(second, spec.key), 1)
  await rows.deleteMany(
    one,
    docs.slice(1).map((doc) => pick(doc, spec.key)),
  )
}

async function useLists(
  { order, filters: declared, total }: CollectionSpec,
  rows: Collection,
  doc: JsonObject,
): Promise<void> {
  const filters: readonly string[] = declared ?? []
  const tenant = tenantId('one')
  if (total) await rows.total(tenant, pick(doc, total.within))
  if (!order) return
  const by = order.by.map((field) => doc[field] as Scalar)
  for (const chosen of [[], filters, ...filters.map((each) => [each])]) {
    const where = pick(doc, [...order.within, ...chosen])
    await rows.page(tenant, { where, limit: 2 })
    await rows.page(tenant, { where, limit: 2, after: by, until: by.slice(0, 1) })
  }
  const [filter] = filters
  if (filter !== undefined && order.within.length === 0) await rows.nextValue(tenant, filter, 'a')
}

/** Whether a router sends a filter only to the shards of the tenants that it names. */
const isTargeted = (filter: Document = {}): boolean =>
  typeof filter['tenant'] === 'string' ||
  typeof filter['tenant']?.['$eq'] === 'string' ||
  (filter['$and'] ?? []).some(isTargeted) ||
  (filter['$or']?.length > 0 && filter['$or'].every(isTargeted))

type Profiled = { op: string; ns: string; command: Document; planSummary?: string }

const filterOf = ({ command }: Profiled): Document | undefined =>
  command['filter'] ?? command['q'] ?? command['query'] ?? command['pipeline']?.[0]?.['$match']

describe('a MongoDB whose collections are sharded by tenant', () => {
  const mongo = useMongo()
  const database = mongo.newDatabase()
  let db: Db
  let sent: Profiled[]
  const called = new Set<string | symbol>()
  const noting = (rows: Collection): Collection =>
    new Proxy(rows, {
      get(target, name) {
        called.add(name)
        const method: unknown = Reflect.get(target, name)
        return typeof method === 'function' ? method.bind(target) : method
      },
    })
  const store = useOpened(() => openMongoStore({ url: mongo.url, database, collections: COLLECTIONS }))
  const client = useOpened(() => new MongoClient(mongo.url).connect())
  before(async () => {
    db = client.db(database)
    await db.createCollection('system.profile', { capped: true, size: PROFILE_BYTES })
    await db.command({ profile: 2 })
    for (const spec of COLLECTIONS) await useAll(spec, noting(store.collection(spec)))
    await db.command({ profile: 0 })
    const own = COLLECTIONS.map(({ name }) => `${database}.${name}`)
    sent = await db
      .collection<Profiled>('system.profile')
      .find({ ns: { $in: own } })
      .toArray()
  })

  it('every method of the port was called', () => {
    const all = Object.getOwnPropertyNames(MongoCollection.prototype).filter((name) => name !== 'constructor')
    expect([...called]).to.have.members(all)
  })

  it('no operation of any collection asks all shards: each names its tenant, or a tenant in each of its branches', () => {
    const filtered = sent.filter(({ op }) => op !== 'insert')
    expect(
      filtered.filter((each) => !isTargeted(filterOf(each))).map(({ ns, command }) => [ns, command]),
    ).to.deep.equal([])
    for (const { name, order } of COLLECTIONS) {
      const ops = new Set(sent.filter(({ ns }) => ns === `${database}.${name}`).map(({ op }) => op))
      expect([...ops], name).to.include.members(['insert', 'query', 'update', 'remove'])
      if (order) expect(sent.filter(({ ns, op }) => ns.endsWith(`.${name}`) && op === 'query').length).to.be.above(3)
    }
    expect(
      filtered.some((each) => filterOf(each)?.['$or']?.length > 1),
      'lookups of several tenants went together',
    ).to.equal(true)
    expect(sent.filter(({ command }) => command['aggregate'] !== undefined)).to.have.length(
      COLLECTIONS.filter(({ total }) => total).length,
    )
  })

  it('no operation reads a whole collection', () => {
    expect(
      sent.filter(({ planSummary }) => planSummary?.includes('COLLSCAN')).map(({ ns, op }) => [ns, op]),
    ).to.deep.equal([])
  })

  it('every unique index begins with the tenant, as a sharded collection needs it', async () => {
    for (const spec of COLLECTIONS)
      for (const { name, key, unique } of await db.collection(spec.name).indexes()) {
        if (unique || !canExpire(spec))
          expect(name === '_id_' || Object.keys(key)[0] === 'tenant', `${spec.name} ${name}`).to.equal(true)
      }
  })

  it('deploy/README.md shards every collection of the product, and no other', async () => {
    const text = await readFile(GUIDE, 'utf8')
    const [, list = ''] =
      /for \(const name of \[([^\]]*)\]\)\s+sh\.shardCollection\(`agent_engine\.\$\{name\}`, \{tenant: 1\}\)/.exec(
        text,
      ) ?? []
    expect(list.match(/\w+/g)).to.have.members(COLLECTIONS.map(({ name }) => name))
  })

  it('a filter without a tenant, or with one in some branches only, asks all shards', () => {
    for (const filter of [
      {},
      { key: 1 },
      { tenant: { $gt: 'a' } },
      { $or: [] },
      { $or: [{ tenant: 'a' }, { key: 1 }] },
      { $and: [{ key: 1 }] },
    ])
      expect(isTargeted(filter), JSON.stringify(filter)).to.equal(false)
  })
})
