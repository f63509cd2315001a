import { expect } from 'chai'
import { AppError } from '../../shared/kernel/errors.ts'
import { MAX_DOCUMENT_BYTES } from '../../shared/platform/store/document.ts'
import type { Collection, CollectionSpec, Store } from '../../shared/platform/store/port.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import { EXPIRING, expiryContract } from './store-expiry.ts'
import { PAGED, pagingContract } from './store-paging.ts'
import { TOTALLED, totalsContract } from './store-totals.ts'

/** Opens a store with these collections, on the data that earlier tests have left. */
export type OpenStore = (collections: readonly CollectionSpec[], now?: () => number) => Promise<Store>

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')

const FLOWS: CollectionSpec = { name: 'flows', key: ['name'], unique: [['alias']] }
const STATED: CollectionSpec = {
  name: 'stated',
  key: ['name'],
  unique: [['alias']],
  order: { within: [], by: ['name'], direction: 'ascending' },
  filters: ['state'],
}
const BODIED: CollectionSpec = {
  name: 'bodied',
  key: ['name'],
  order: { within: [], by: ['name'], direction: 'ascending' },
  hasBody: true,
}
const ALL = [FLOWS, STATED, BODIED, ...EXPIRING, ...PAGED, ...TOTALLED]

/** Data that a user may send and that a database could interpret: operators, paths, type tags, SQL. */
const HOSTILE = {
  'a.b': { 'c.d': 1, '': 2 },
  $set: { $where: 'sleep(1000)' },
  $ref: '#/x',
  $id: 'y',
  $db: 'z',
  _id: { $gt: '' },
  _bsontype: 'ObjectId',
  id: '0'.repeat(24),
  'nul\0key': 'nul\0value',
  constructor: { prototype: 1 },
  deep: JSON.parse(`${'[{"a":'.repeat(60)}1${'}]'.repeat(60)}`) as unknown,
  half: '\ud800',
  emoji: '😀',
  numbers: [0, -1.5, 2 ** 53, 1e300, 1e-7],
  quotes: `'"; DROP TABLE flows; --`,
  nothing: null,
}

async function refusalOf(call: Promise<unknown>): Promise<string> {
  const cause = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (cause instanceof AppError) return cause.kind
  throw cause ?? new Error('the call was not refused')
}

/** The tests that every store passes, whichever database it uses. */
export function storeContract(open: OpenStore): void {
  let flows: Collection
  let stated: Collection
  let clock = Date.now()
  let count = 0
  const flow = (more = {}) => ({ name: `flow${++count}`, alias: `alias${count}`, ...more })
  const store = useOpened(() => open(ALL, () => clock))
  before(async () => {
    flows = store.collection(FLOWS)
    stated = store.collection(STATED)
  })

  it('an inserted document is found by its key and by its other unique fields, as version 1', async () => {
    const doc = flow({ state: 'draft', steps: [1, { two: 2 }] })
    expect(await flows.insert(TENANT, doc)).to.equal(true)
    const stored = { doc, version: 1 }
    expect(await flows.get(TENANT, { name: doc.name })).to.deep.equal(stored)
    expect(await flows.get(TENANT, { alias: doc.alias })).to.deep.equal(stored)
    expect(await flows.get(TENANT, { name: 'none' })).to.equal(undefined)
  })

  it('a document whose caller has made its JSON is stored as that, and found by its indexed fields', async () => {
    const indexed = flow({ state: 'draft' })
    const doc = { ...indexed, steps: ['é 😀'] }
    expect(await flows.insertMissing([{ tenant: TENANT, doc: indexed, json: JSON.stringify(doc) }])).to.deep.equal([])
    expect(await flows.get(TENANT, { name: doc.name })).to.deep.equal({ doc, version: 1 })
    expect(await flows.get(TENANT, { alias: doc.alias })).to.deep.equal({ doc, version: 1 })
  })

  it('a body is returned with its document and left out of pages, and a collection without bodies takes none', async () => {
    const bodied = store.collection(BODIED)
    const docs = ['with', 'without'].map((name) => ({ tenant: TENANT, doc: { name } }))
    const [first, second] = docs
    const body = `'"; {"$set": 😀 \\ `
    expect(await bodied.insertMissing(docs.map((each) => (each === first ? { ...each, body } : each)))).to.deep.equal(
      [],
    )
    expect(await bodied.get(TENANT, { name: 'with' })).to.deep.equal({ doc: first?.doc, version: 1, body })
    expect(await bodied.get(TENANT, { name: 'without' })).to.deep.equal({ doc: second?.doc, version: 1 })
    expect(await bodied.page(TENANT, { limit: 2 })).to.deep.equal(docs.map(({ doc }) => ({ doc, version: 1 })))
    const changed = { name: 'with', more: 1 }
    await bodied.replaceIfVersion(TENANT, { doc: changed, version: 1 })
    expect(await bodied.get(TENANT, { name: 'with' }), 'changed').to.deep.equal({ doc: changed, version: 2, body })
    const tooLong = { tenant: TENANT, doc: { name: 'long' }, body: 'x'.repeat(MAX_DOCUMENT_BYTES + 1) }
    expect(await refusalOf(bodied.insertMissing([tooLong]))).to.equal('invalid_request')
    const misplaced = flows.insertMissing([{ tenant: TENANT, doc: flow(), body }])
    const refusal = await misplaced.catch((cause: unknown) => cause)
    expect(refusal).to.be.an('error').with.property('message', 'flows: documents have no body')
  })

  it('several documents of several tenants are inserted at once, except those whose key or unique value is taken', async () => {
    const taken = flow({ state: 'first' })
    await flows.insert(TENANT, taken)
    const [fresh, others] = [flow({ state: 'fresh' }), { ...taken, state: 'of another tenant' }]
    const sameKey = { ...flow(), name: taken.name }
    const sameAlias = { ...flow(), alias: taken.alias }
    const docs = [sameKey, fresh, sameAlias].map((doc) => ({ tenant: TENANT, doc }))
    const all = [...docs, { tenant: OTHER, doc: others }]
    expect(await flows.insertMissing(all)).to.deep.equal([docs[0], docs[2]])
    expect(await flows.insertMissing(all), 'none is free any more').to.deep.equal(all)
    expect(await flows.insertMissing([])).to.deep.equal([])
    expect(await flows.get(TENANT, { name: taken.name })).to.deep.equal({ doc: taken, version: 1 })
    expect(await flows.get(TENANT, { name: fresh.name })).to.deep.equal({ doc: fresh, version: 1 })
    expect(await flows.get(TENANT, { name: sameAlias.name })).to.equal(undefined)
    expect(await flows.get(OTHER, { name: taken.name })).to.deep.equal({ doc: others, version: 1 })
  })

  it('of many documents that are inserted at once, those are skipped whose key is taken, or came before', async () => {
    const bodied = store.collection(BODIED)
    const tenant = tenantId('many')
    const docs = Array.from({ length: 35 }, (_, n) => ({ tenant, doc: { name: `many-${n}` }, body: `body ${n}` }))
    const [taken, repeated] = [
      { tenant, doc: { name: 'many-13', is: 'taken' } },
      { tenant, doc: { name: 'many-2' } },
    ]
    await bodied.insert(tenant, taken.doc)
    expect(await bodied.insertMissing([...docs, repeated])).to.deep.equal([docs[13], repeated])
    const stored = docs.map(({ doc, body }, n) => (n === 13 ? { doc: taken.doc } : { doc, body }))
    for (const each of stored) {
      const found = await bodied.get(tenant, { name: each.doc.name })
      expect(found).to.deep.equal({ ...each, version: 1 })
    }
  })

  it('a document is returned as it was stored, whatever its keys and strings are', async () => {
    const doc = flow({ payload: HOSTILE, ...HOSTILE })
    expect(await flows.insert(TENANT, doc)).to.equal(true)
    const stored = await flows.get(TENANT, { name: doc.name })
    expect(stored?.doc).to.deep.equal(doc)
    expect(Object.keys(stored?.doc ?? {})).to.deep.equal(Object.keys(doc))
    expect(await flows.replaceIfVersion(TENANT, { doc: { ...doc, more: HOSTILE }, version: 1 })).to.equal(true)
    expect((await flows.get(TENANT, { name: doc.name }))?.doc).to.deep.equal({ ...doc, more: HOSTILE })
  })

  it('`__proto__` is an ordinary key and changes no prototype', async () => {
    const doc = flow({ payload: JSON.parse('{"__proto__":{"isAdmin":true}}') as unknown })
    await flows.insert(TENANT, doc)
    const payload = (await flows.get(TENANT, { name: doc.name }))?.doc['payload'] as object
    expect(Object.keys(payload)).to.deep.equal(['__proto__'])
    expect('isAdmin' in payload).to.equal(false)
  })

  it('an insert with a taken key or another taken unique value returns false and changes nothing', async () => {
    const doc = flow()
    await flows.insert(TENANT, doc)
    expect(await flows.insert(TENANT, { ...doc, alias: 'free' })).to.equal(false)
    expect(await flows.insert(TENANT, { ...doc, name: 'free' })).to.equal(false)
    expect(await flows.get(TENANT, { name: doc.name })).to.deep.equal({ doc, version: 1 })
    expect(await flows.get(TENANT, { name: 'free' })).to.equal(undefined)
  })

  it('of 50 concurrent inserts of one key exactly one succeeds', async () => {
    const doc = flow()
    const won = await Promise.all(
      Array.from({ length: 50 }, (_, by) => flows.insert(TENANT, { ...doc, alias: `r${by}` })),
    )
    expect(won.filter(Boolean)).to.have.length(1)
    expect((await flows.get(TENANT, { name: doc.name }))?.doc['alias']).to.equal(`r${won.indexOf(true)}`)
  })

  it('of 50 concurrent replacements of one version exactly one succeeds, and the version grows by one', async () => {
    const doc = flow()
    await flows.insert(TENANT, doc)
    const replace = (by: number) => flows.replaceIfVersion(TENANT, { doc: { ...doc, by }, version: 1 })
    const won = await Promise.all(Array.from({ length: 50 }, (_, by) => replace(by)))
    expect(won.filter(Boolean)).to.have.length(1)
    expect(await flows.get(TENANT, { name: doc.name })).to.deep.equal({
      doc: { ...doc, by: won.indexOf(true) },
      version: 2,
    })
  })

  it('a replacement of an absent document, or with a unique value that is taken, is refused', async () => {
    const [one, two] = [flow(), flow()]
    await flows.insert(TENANT, one)
    await flows.insert(TENANT, two)
    expect(await flows.replaceIfVersion(TENANT, { doc: { ...two, alias: one.alias }, version: 1 })).to.equal(false)
    expect(await flows.replaceIfVersion(TENANT, { doc: flow(), version: 1 })).to.equal(false)
    expect(await flows.get(TENANT, { name: two.name })).to.deep.equal({ doc: two, version: 1 })
  })

  it('a replaced document is found by its new values only', async () => {
    const doc = flow()
    await flows.insert(TENANT, doc)
    await flows.replaceIfVersion(TENANT, { doc: { ...doc, alias: 'moved' }, version: 1 })
    expect(await flows.get(TENANT, { alias: doc.alias })).to.equal(undefined)
    expect((await flows.get(TENANT, { alias: 'moved' }))?.version).to.equal(2)
  })

  it('an update sets fields of the document that agrees, returns it whole, and finds it by its new values', async () => {
    const doc = { ...flow({ payload: HOSTILE, ...HOSTILE, note: 'first' }), state: 'queued' }
    const other = { ...flow({ note: 'first' }), state: 'queued' }
    for (const each of [doc, other]) await stated.insert(TENANT, each)
    const take = (by: number) =>
      stated.update(TENANT, { key: { name: doc.name }, where: { state: 'queued' }, set: { state: 'running', by } })
    const won = (await Promise.all(Array.from({ length: 20 }, (_, by) => take(by)))).filter(
      (each) => each !== undefined,
    )
    expect(won).to.have.length(1)
    const by = won[0]?.doc['by']
    expect(won[0]).to.deep.equal({ doc: { ...doc, state: 'running', by }, version: 2 })
    expect(await stated.get(TENANT, { name: doc.name })).to.deep.equal(won[0])
    const namesOf = async (state: string) =>
      (await stated.page(TENANT, { where: { state }, limit: 10 })).map(({ doc: { name } }) => name)
    expect(await namesOf('running')).to.deep.equal([doc.name])
    expect(await namesOf('queued')).to.deep.equal([other.name])

    const again = { key: { name: doc.name }, where: {}, set: { note: HOSTILE, by: null } }
    const changed = { ...doc, state: 'running', by: null, note: HOSTILE }
    expect(await stated.update(TENANT, again)).to.deep.equal({ doc: changed, version: 3 })
    expect(await stated.replaceIfVersion(TENANT, { doc: { ...changed, by: 1 }, version: 3 })).to.equal(true)
    expect(await stated.get(TENANT, { name: doc.name })).to.deep.equal({ doc: { ...changed, by: 1 }, version: 4 })
  })

  it('an update of no document, of another tenant, or of a field that is fixed changes nothing', async () => {
    const doc = { ...flow(), state: 'queued' }
    await stated.insert(TENANT, doc)
    const update = { key: { name: doc.name }, where: { state: 'queued' }, set: { note: 1 } }
    expect(await stated.update(OTHER, update)).to.equal(undefined)
    expect(await stated.update(TENANT, { ...update, key: { name: 'none' } })).to.equal(undefined)
    for (const set of [{ name: 'x' }, { alias: 'x' }, {}])
      expect(await stated.update(TENANT, { ...update, set }).catch(String)).to.include('cannot be set')
    expect(await stated.update(TENANT, { ...update, where: { note: 1 } }).catch(String)).to.include('looked up by note')
    expect(await stated.update(TENANT, { ...update, set: { state: { $gt: '' } } }).catch(String)).to.match(
      /neither a str/,
    )
    expect(await stated.get(TENANT, { name: doc.name })).to.deep.equal({ doc, version: 1 })
  })

  it('a document is deleted once, and only in the given version', async () => {
    const doc = flow()
    await flows.insert(TENANT, doc)
    expect(await flows.delete(TENANT, { name: doc.name }, 2)).to.equal(false)
    expect(await flows.delete(TENANT, { name: doc.name }, 1)).to.equal(true)
    expect(await flows.delete(TENANT, { name: doc.name })).to.equal(false)
    expect(await flows.get(TENANT, { name: doc.name })).to.equal(undefined)
    expect(await flows.insert(TENANT, doc)).to.equal(true)
  })

  it('several documents are deleted at once, those that do not exist are skipped, and no other tenant loses any', async () => {
    const [one, two, kept] = [flow(), flow(), flow()]
    const docs = [one, two, kept].map((doc) => ({ tenant: TENANT, doc }))
    await flows.insertMissing([...docs, { tenant: OTHER, doc: one }])
    const keys = [one, two].map(({ name }) => ({ name }))
    await flows.deleteMany(TENANT, [...keys, { name: 'none' }])
    await flows.deleteMany(TENANT, keys)
    await flows.deleteMany(TENANT, [])
    for (const { name } of [one, two]) expect(await flows.get(TENANT, { name })).to.equal(undefined)
    expect(await flows.get(TENANT, { name: kept.name })).to.deep.equal({ doc: kept, version: 1 })
    expect(await flows.get(OTHER, { name: one.name })).to.deep.equal({ doc: one, version: 1 })
  })

  it('a tenant reaches no document of another tenant, and both may use the same key', async () => {
    const doc = flow()
    await flows.insert(TENANT, doc)
    expect(await flows.get(OTHER, { name: doc.name })).to.equal(undefined)
    expect(await flows.delete(OTHER, { name: doc.name })).to.equal(false)
    expect(await flows.replaceIfVersion(OTHER, { doc: { ...doc, x: 1 }, version: 1 })).to.equal(false)
    expect(await flows.insert(OTHER, { ...doc, x: 2 })).to.equal(true)
    expect(await flows.get(TENANT, { name: doc.name })).to.deep.equal({ doc, version: 1 })
  })

  it('a write of any durability is found at once, and refused for the same reasons', async () => {
    for (const durability of ['weak', 'ordered', 'full'] as const) {
      const doc = flow()
      expect(await flows.insert(TENANT, doc, { durability })).to.equal(true)
      expect(await flows.insert(TENANT, doc, { durability })).to.equal(false)
      expect(await flows.get(TENANT, { name: doc.name })).to.deep.equal({ doc, version: 1 })
      const changed = { ...doc, state: 'draft' }
      expect(await flows.replaceIfVersion(TENANT, { doc: changed, version: 1 }, { durability })).to.equal(true)
      expect(await flows.replaceIfVersion(TENANT, { doc, version: 1 }, { durability })).to.equal(false)
      expect(await flows.get(TENANT, { name: doc.name })).to.deep.equal({ doc: changed, version: 2 })
    }
  })

  it('a write whose time is over before it leaves the process is refused and does not happen', async () => {
    const [late, paused] = [flow(), flow()]
    expect(await refusalOf(flows.insert(TENANT, late, { withinMs: 0 }))).to.equal('unavailable')
    expect(await flows.get(TENANT, { name: late.name })).to.equal(undefined)
    const write = flows.insert(TENANT, paused, { withinMs: 50 }).catch((cause: AppError) => cause.kind)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 120) // As if the process was paused here.
    const outcome = await write
    const isThere = (await flows.get(TENANT, { name: paused.name })) !== undefined
    expect({ outcome, isThere }).to.deep.equal(
      isThere ? { outcome: true, isThere } : { outcome: 'unavailable', isThere },
    )
  })

  it('D2.11: a value to look up must be a string or a number, so it can never be a query', async () => {
    const messageOf = (call: Promise<unknown>) => call.catch((cause: Error) => cause.message)
    for (const name of [{ $gt: '' }, null, ['a'], true, Number.NaN]) {
      expect(await messageOf(flows.get(TENANT, { name } as never))).to.match(/neither a string/)
      expect(await messageOf(flows.insert(TENANT, { ...flow(), name }))).to.match(/neither a string/)
    }
    for (const name of ['half \ud800', 'nul \0'])
      expect(await refusalOf(flows.get(TENANT, { name }))).to.equal('invalid_request')
  })

  it('a document of more than 8 MiB is refused', async () => {
    expect(await refusalOf(flows.insert(TENANT, flow({ text: 'x'.repeat(8 * 2 ** 20) })))).to.equal('invalid_request')
    expect(await flows.insert(TENANT, flow({ text: 'x'.repeat(8 * 2 ** 20 - 1000) }))).to.equal(true)
  })

  it('using a collection or a field that was not declared throws an error that names it', async () => {
    expect(() => store.collection({ name: 'others', key: ['id'] })).to.throw('others')
    expect(await flows.get(TENANT, { state: 'x' }).catch(String)).to.include('cannot be looked up by state')
    expect(await flows.page(TENANT, { limit: 1 }).catch(String)).to.include('cannot be paged')
    const failure = await open([{ name: 'a; DROP TABLE flows', key: ['id'] }]).catch(String)
    expect(failure).to.include('is not allowed as a name')
  })

  pagingContract(() => store)

  totalsContract(
    () => store,
    () => open(TOTALLED),
  )

  expiryContract(() => store, { now: () => clock, advance: (ms) => void (clock += ms) })

  it('another process finds stored documents, also when its version has more collections, filters and indexes', async () => {
    const doc = flow({ state: 'draft' })
    await flows.insert(TENANT, doc)
    const order = { within: [], by: ['name'], direction: 'ascending' } as const
    const more: CollectionSpec = { ...FLOWS, unique: [['alias'], ['name', 'state']], order, filters: ['state'] }
    const later = await open([more, { name: 'later', key: ['id'] }])
    try {
      const opened = later.collection(more)
      expect(await opened.get(TENANT, { name: doc.name })).to.deep.equal({ doc, version: 1 })
      const added = flow({ state: 'new' })
      expect(await opened.insert(TENANT, added)).to.equal(true)
      expect((await opened.get(TENANT, { name: added.name, state: 'new' }))?.doc).to.deep.equal(added)
      const page = await opened.page(TENANT, { where: { state: 'new' }, limit: 9 })
      expect(page.map((found) => found.doc)).to.deep.equal([added])
    } finally {
      await later.close()
    }
  })

  it('a store that answers reports no outage, and can be closed twice', async () => {
    const other = await open(ALL)
    expect(other.awayMs()).to.equal(0)
    await other.close()
    await other.close()
  })
}
