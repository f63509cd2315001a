import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import {
  assertValidSpec,
  canExpire,
  checkQuery,
  expiryOf,
  indexedFields,
  indexesOf,
  keyValues,
  ownExpiryOf,
  pickValues,
  serializeDocument,
  uniqueGroupOf,
} from '../../../shared/platform/store/document.ts'
import type { CollectionSpec, PageQuery } from '../../../shared/platform/store/port.ts'

const NOTES: CollectionSpec = {
  name: 'notes',
  key: ['id'],
  unique: [['customer_id', 'title']],
  order: { within: ['customer_id'], by: ['at', 'id'], direction: 'descending' },
  filters: ['status', 'kind'],
}
const STEPS: CollectionSpec = {
  name: 'steps',
  key: ['plan', 'step'],
  order: { within: ['plan'], by: ['step'], direction: 'ascending' },
}

describe('the declaration of a collection', () => {
  it('names every field once that is looked up, ordered or filtered by', () => {
    expect(indexedFields(NOTES)).to.deep.equal(['id', 'customer_id', 'title', 'at', 'status', 'kind'])
    expect(indexedFields({ name: 'plain', key: ['id'] })).to.deep.equal(['id'])
  })

  it('gives one index for the key, each unique group and each selection of filters, unless the key orders already', () => {
    const pages = [[], ['status'], ['kind'], ['status', 'kind']].map((chosen) => ['customer_id', ...chosen, 'at', 'id'])
    expect(indexesOf(NOTES)).to.deep.equal([
      { name: 'by_id', fields: ['id'], isUnique: true },
      { name: 'by_customer_id_title', fields: ['customer_id', 'title'], isUnique: true },
      ...pages.map((fields) => ({ name: `by_${fields.join('_')}`, fields, isUnique: false })),
    ])
    expect(indexesOf({ name: 'plain', key: ['id'] })).to.have.length(1)
    expect(indexesOf(STEPS)).to.deep.equal([{ name: 'by_plan_step', fields: ['plan', 'step'], isUnique: true }])
  })

  it('gives a total an index that ends in the number, which is a field like the others', () => {
    const spec: CollectionSpec = { name: 'parcels', key: ['id'], total: { within: ['owner'], of: 'grams' } }
    expect(indexesOf(spec).at(-1)).to.deep.equal({
      name: 'by_owner_grams',
      fields: ['owner', 'grams'],
      isUnique: false,
    })
    expect(indexedFields(spec)).to.deep.equal(['id', 'owner', 'grams'])
    expect(() => assertValidSpec({ ...spec, ttlSecs: 1 })).to.throw('have no total')
  })

  it('accepts names of lower-case letters, digits and underscores up to 63 characters, but no reserved one', () => {
    const named =
      (name: string, field = 'id') =>
      () =>
        assertValidSpec({ name, key: [field] })
    for (const name of ['a', 'a_1', 'a'.repeat(63)]) expect(named(name), name).to.not.throw()
    for (const name of ['', 'A', '1a', '_a', 'a-b', 'a b', 'a;', 'a'.repeat(64), 'a\n'])
      expect(named(name), name).to.throw('is not allowed as a name')
    for (const field of ['tenant', 'doc', 'version', 'expires_at', 'rowid', 'oid', 'a.b', '$a'])
      expect(named('a', field), field).to.throw(`a: ${field} is not allowed as a name`)
  })

  it('has at most one expiry: a time after the insert, or a field of the document', () => {
    const byTime: CollectionSpec = { name: 'keys', key: ['id'], ttlSecs: 60 }
    const byField: CollectionSpec = { name: 'runs', key: ['id'], expiresBy: 'until_ms' }
    expect([byTime, byField, STEPS].map(canExpire)).to.deep.equal([true, true, false])
    expect(() => assertValidSpec({ ...byTime, expiresBy: 'until_ms' })).to.throw('keys: give either ttlSecs or')
    const doc = { id: 'a', until_ms: 5_000.7 }
    expect([byTime, byField, STEPS].map((spec) => expiryOf(spec, doc, 1_000))).to.deep.equal([61_000, 5_000, undefined])
    expect([byTime, byField].map((spec) => ownExpiryOf(spec, doc))).to.deep.equal([undefined, 5_000])
    for (const until_ms of [undefined, '5000', Number.NaN, Infinity])
      expect(() => expiryOf(byField, { id: 'a', until_ms }, 0)).to.throw('runs.until_ms is not a number')
  })
})

describe('the values of a document', () => {
  it('are picked in the order of the names, and none may be missing or left over', () => {
    expect(pickValues(STEPS, ['plan', 'step'], { step: 2, plan: 'p' })).to.deep.equal(['p', 2])
    expect(keyValues(STEPS, { other: true, step: 2, plan: 'p' })).to.deep.equal(['p', 2])
    expect(() => pickValues(STEPS, ['plan', 'step'], { plan: 'p' })).to.throw('steps.step is neither')
    expect(() => pickValues(STEPS, ['plan'], { plan: 'p', step: 2 })).to.throw('cannot be looked up by plan, step')
  })

  it('identify a document by the whole key or a whole unique group', () => {
    expect(uniqueGroupOf(NOTES, { id: 'n' })).to.deep.equal(['id'])
    expect(uniqueGroupOf(NOTES, { title: 't', customer_id: 'c' })).to.deep.equal(['customer_id', 'title'])
    for (const fields of [{}, { customer_id: 'c' }, { id: 'n', title: 't' }, { title: 't', id: 'n', customer_id: 'c' }])
      expect(() => uniqueGroupOf(NOTES, fields), Object.keys(fields).join()).to.throw('cannot be looked up by')
  })

  it('are finite numbers or well-formed strings without NUL', () => {
    const check = (plan: unknown) => () => keyValues(STEPS, { plan, step: 1 })
    for (const value of ['', 'é', '😀', '0', 0, -1.5]) expect(check(value), String(value)).to.not.throw()
    for (const value of [Number.NaN, Infinity, true, null, undefined, {}, ['a']])
      expect(check(value), String(value)).to.throw('steps.plan is neither a string nor a number')
    for (const value of ['\ud800', 'a\0'])
      expect(check(value))
        .to.throw(AppError, 'plan holds an invalid character')
        .with.property('kind', 'invalid_request')
  })

  it('are checked in all indexed fields before a document is serialized', () => {
    const note = { id: 'n', customer_id: 'c', title: 't', at: 'now', status: 's', kind: 'k' }
    expect(serializeDocument(NOTES, note)).to.equal(JSON.stringify(note))
    for (const field of Object.keys(note))
      expect(() => serializeDocument(NOTES, { ...note, [field]: undefined }), field).to.throw(
        `notes.${field} is neither`,
      )
  })

  it('make a document of at most 8 MiB, counted in UTF-8', () => {
    const overhead = JSON.stringify({ plan: '', step: 1 }).length
    const ofBytes = (bytes: number) => ({ plan: 'é'.repeat((bytes - overhead) / 2), step: 1 })
    expect(overhead % 2).to.equal(0)
    expect(() => serializeDocument(STEPS, ofBytes(8 * 2 ** 20))).to.not.throw()
    expect(() => serializeDocument(STEPS, ofBytes(8 * 2 ** 20 + 2)))
      .to.throw(AppError, 'send less')
      .with.property('status', 413)
  })
})

describe('the query of a page', () => {
  const where = { customer_id: 'c' }
  const query = (more: Partial<PageQuery> = {}) => checkQuery(NOTES, { where, limit: 1, ...more })

  it('compares the fields of `within` and the given filters', () => {
    expect(query().where).to.deep.equal([['customer_id', 'c']])
    expect(query({ where: { kind: 'k', customer_id: 'c', status: 's' } }).where).to.deep.equal([
      ['customer_id', 'c'],
      ['status', 's'],
      ['kind', 'k'],
    ])
    expect(() => query({ where: {} })).to.throw('notes.customer_id is neither')
    expect(() => query({ where: { ...where, title: 't' } })).to.throw('cannot be looked up by')
  })

  it('names the index that holds exactly its documents, whatever the order of the filters', () => {
    const names = indexesOf(NOTES).map(({ name }) => name)
    const indexOf = (filters: object) => query({ where: { ...filters, ...where } }).index
    expect(indexOf({})).to.equal('by_customer_id_at_id')
    expect(indexOf({ kind: 'k' })).to.equal('by_customer_id_kind_at_id')
    expect(indexOf({ kind: 'k', status: 's' })).to.equal('by_customer_id_status_kind_at_id')
    for (const filters of [{}, { kind: 'k' }, { status: 's' }, { kind: 'k', status: 's' }])
      expect(names).to.include(indexOf(filters))
    expect(checkQuery(STEPS, { where: { plan: 'p' }, limit: 1 }).index).to.equal('by_plan_step')
  })

  it('takes a limit of 1 to 1,000', () => {
    for (const limit of [1, 1000]) expect(query({ limit })).to.include({ limit })
    for (const limit of [0, -1, 1001, 1.5, Number.NaN]) expect(() => query({ limit }), `${limit}`).to.throw('1 to 1000')
  })

  it('begins after `after` and ends with `until`, in the direction of the order', () => {
    expect(query()).to.deep.include({ bounds: [], by: ['at', 'id'], isDescending: true })
    expect(query({ after: ['2026', 'n'], until: ['2025'] }).bounds).to.deep.equal([
      { names: ['at', 'id'], values: ['2026', 'n'], isLower: false, isInclusive: false },
      { names: ['at'], values: ['2025'], isLower: true, isInclusive: true },
    ])
    const ascending = checkQuery(STEPS, { where: { plan: 'p' }, after: [1], until: [9], limit: 1 })
    expect(ascending.isDescending).to.equal(false)
    expect(ascending.bounds).to.deep.equal([
      { names: ['step'], values: [1], isLower: true, isInclusive: false },
      { names: ['step'], values: [9], isLower: false, isInclusive: true },
    ])
  })

  it('takes one value for each ordered field or for the first few', () => {
    for (const after of [[], ['a', 'b', 'c']])
      expect(() => query({ after }), after.join()).to.throw('notes is ordered by at, id')
    expect(() => query({ until: [{} as never] })).to.throw('notes.at is neither')
    expect(() => query({ after: ['a', '\0'] })).to.throw('id holds an invalid character')
  })

  it('is refused for a collection without an order', () => {
    expect(() => checkQuery({ name: 'plain', key: ['id'] }, { limit: 1 })).to.throw('plain has no order')
  })
})
