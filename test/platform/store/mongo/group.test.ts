// Tests group.ts and grouped-rows.ts: operations that go together.

import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { Group } from '../../../../shared/platform/store/mongo/group.ts'
import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import type { Collection, CollectionSpec, Store } from '../../../../shared/platform/store/port.ts'
import { useMongo } from '../../../support/mongo.ts'
import { tenantId } from '../../../support/tenant.ts'

const OTHER = tenantId('t_other')

describe('operations that go together', () => {
  /** A group whose commands are ended by the test; `sent` holds their operations. */
  function setUp() {
    const sent: (readonly number[])[] = []
    const ends: ((results: readonly PromiseSettledResult<string>[]) => void)[] = []
    const failures: ((cause: Error) => void)[] = []
    const group = new Group<number, string>((operations) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly PromiseSettledResult<string>[]>()
      sent.push(operations)
      ends.push(resolve)
      failures.push(reject)
      return promise
    })
    return { group, sent, ends, failures }
  }
  const done = (...values: string[]): PromiseSettledResult<string>[] =>
    values.map((value) => ({ status: 'fulfilled', value }))

  it('one is sent at once, and those that come while it is under way go with one command after it', async () => {
    const { group, sent, ends } = setUp()
    const results = [1, 2, 3].map((operation) => group.add(operation))
    expect(sent).to.deep.equal([[1]])
    ends[0]?.(done('one'))
    await results[0]
    await Promise.resolve()
    expect(sent).to.deep.equal([[1], [2, 3]])
    ends[1]?.(done('two', 'three'))
    expect(await Promise.all(results)).to.deep.equal(['one', 'two', 'three'])
  })

  it('each has its own result, and the failure of a command is that of its own operations only', async () => {
    const { group, ends, failures } = setUp()
    const results = [1, 2, 3].map((operation) => group.add(operation))
    failures[0]?.(new Error('the first'))
    const own = { status: 'rejected' as const, reason: new Error('the third') }
    expect(await results[0]?.catch((cause: unknown) => cause)).to.have.property('message', 'the first')
    await Promise.resolve()
    ends[1]?.([...done('two'), own])
    expect(await results[1]).to.equal('two')
    expect(await results[2]?.catch((cause: unknown) => cause)).to.have.property('message', 'the third')
  })

  it('a command that is not answered does not hold up the next one', async () => {
    const { group, ends } = setUp()
    void group.add(1)
    const second = group.add(2)
    while (ends.length < 2) await new Promise(setImmediate)
    ends[1]?.(done('two'))
    expect(await second).to.equal('two')
  })

  it('the number of those that wait has a bound', async () => {
    const { group, sent } = setUp()
    for (let i = 0; i <= 220; i++) void group.add(i)
    const refused = await group.add(221).catch((cause: unknown) => cause)
    expect(refused).to.be.instanceOf(AppError).and.include({ kind: 'unavailable' })
    expect(sent).to.deep.equal([[0]])
  })
})

const THINGS: CollectionSpec = { name: 'things', key: ['thing_id'], unique: [['name']] }
const EXPIRING: CollectionSpec = { name: 'expiring', key: ['thing_id'], expiresBy: 'expires_ms' }

const AT_ONCE = 40

describe('operations on MongoDB at the same time', () => {
  const mongo = useMongo()
  let store: Store
  let things: Collection
  before(async () => {
    const collections = [THINGS, EXPIRING]
    store = await openMongoStore({ url: mongo.url, database: mongo.newDatabase(), collections })
    things = store.collection(THINGS)
  })
  after(() => store.close())

  let count = 0
  const newThings = () => Array.from({ length: AT_ONCE }, () => thing(`thing_${(count += 1)}`))
  const thing = (id: string, text = '') => ({ thing_id: id, name: `name of ${id}`, text })
  const stored = async (id: string) => (await things.get(TENANT, { thing_id: id }))?.doc['text']
  const insertAll = (docs: readonly ReturnType<typeof thing>[]) =>
    Promise.all(docs.map((doc) => things.insert(TENANT, doc)))

  it('of two inserts with one key, and of two with another unique value, one is told that it is stored', async () => {
    const docs = newThings()
    const sameName = docs.map((doc) => ({ ...doc, thing_id: `${doc.thing_id} again` }))
    const results = await Promise.all([
      ...docs.map((doc) => things.insert(TENANT, { ...doc, text: 'first' })),
      ...docs.map((doc) => things.insert(TENANT, { ...doc, text: 'second' })),
      ...sameName.map((doc) => things.insert(TENANT, doc)),
    ])
    const expected = [docs.map(() => true), docs.map(() => false), docs.map(() => false)].flat()
    expect(results).to.deep.equal(expected)
    for (const { thing_id } of docs) expect(await stored(thing_id)).to.equal('first')
  })

  it('each replacement learns whether the document had its version, in one command with others of the same document', async () => {
    const docs = newThings()
    await insertAll(docs)
    const replace = (id: string, text: string, version: number) =>
      things.replaceIfVersion(TENANT, { doc: thing(id, text), version })
    const results = await Promise.all(
      docs.flatMap(({ thing_id: id }) => [replace(id, 'stale', 7), replace(id, 'right', 1), replace(id, 'late', 1)]),
    )
    expect(results).to.deep.equal(docs.flatMap(() => [false, true, false]))
    const found = await Promise.all(docs.map(({ thing_id }) => things.get(TENANT, { thing_id })))
    expect(found).to.deep.equal(docs.map(({ thing_id }) => ({ doc: thing(thing_id, 'right'), version: 2 })))
  })

  it('a replacement of a document that does not exist, is of another tenant or has expired creates none', async () => {
    const docs = newThings()
    await insertAll(docs)
    const expiring = store.collection(EXPIRING)
    const expired = docs.map(({ thing_id }) => ({ thing_id, expires_ms: Date.now() - 1 }))
    await Promise.all(expired.map((doc) => expiring.insert(TENANT, doc)))
    const later = expired.map((doc) => ({ ...doc, expires_ms: Date.now() + 60_000 }))
    const results = await Promise.all([
      ...docs.map((doc) => things.replaceIfVersion(OTHER, { doc, version: 1 })),
      ...docs.map((doc) => things.replaceIfVersion(TENANT, { doc: { ...doc, thing_id: 'none' }, version: 1 })),
      ...later.map((doc) => expiring.replaceIfVersion(TENANT, { doc, version: 1 })),
    ])
    expect(results.filter(Boolean)).to.deep.equal([])
    expect(await things.get(TENANT, { thing_id: 'none' })).to.equal(undefined)
    expect(await things.get(OTHER, { thing_id: docs[0]?.thing_id ?? '' })).to.equal(undefined)
    expect(await expiring.get(TENANT, { thing_id: docs[0]?.thing_id ?? '' })).to.equal(undefined)
  })

  it('a replacement whose unique value is taken changes nothing, and its neighbours are done', async () => {
    const docs = newThings()
    await insertAll(docs)
    const [first] = docs
    const results = await Promise.all(
      docs.map((doc, i) => {
        const name = i % 2 === 1 && first ? first.name : doc.name
        return things.replaceIfVersion(TENANT, { doc: { ...doc, name, text: 'new' }, version: 1 })
      }),
    )
    expect(results).to.deep.equal(docs.map((_, i) => i % 2 === 0))
    for (const [i, { thing_id }] of docs.entries()) expect(await stored(thing_id)).to.equal(i % 2 === 0 ? 'new' : '')
  })

  it('a document is replaced exactly, whatever its text looks like to MongoDB', async () => {
    const docs = newThings()
    await insertAll(docs)
    const odd = ['$version', '$$ROOT', '{"$set":1}', ' ']
    const next = docs.map((doc, i) => ({ ...doc, name: `${odd[i % 4]} ${i} ${doc.thing_id}`, text: odd[i % 4] ?? '' }))
    await Promise.all(next.map((doc) => things.replaceIfVersion(TENANT, { doc, version: 1 })))
    for (const doc of next) expect(await things.get(TENANT, { name: doc.name })).to.deep.equal({ doc, version: 2 })
  })

  it('each look-up gets its own document, by the key or another unique value, and none of another tenant', async () => {
    const docs = newThings()
    await insertAll(docs)
    const own = docs.flatMap(({ thing_id, name }) => [things.get(TENANT, { thing_id }), things.get(TENANT, { name })])
    const others = docs.map(({ thing_id }) => things.get(OTHER, { thing_id }))
    const missing = docs.map(({ name }) => things.get(TENANT, { thing_id: name }))
    const expected = docs.flatMap((doc) => [doc, doc]).map((doc) => ({ doc, version: 1 }))
    expect(await Promise.all(own)).to.deep.equal(expected)
    expect((await Promise.all([...others, ...missing])).filter(Boolean)).to.deep.equal([])
  })
})
