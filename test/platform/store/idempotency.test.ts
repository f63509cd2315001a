import { expect } from 'chai'
import * as fc from 'fast-check'
import { canonicalHash } from '../../../shared/platform/store/idempotency.ts'

describe('the canonical hash of a body', () => {
  it('does not depend on the order of keys, at any depth', () => {
    const hash = canonicalHash({ a: 1, b: { c: [1, { d: 2, e: 3 }], f: null } })
    expect(canonicalHash({ b: { f: null, c: [1, { e: 3, d: 2 }] }, a: 1 })).to.equal(hash)
    expect(hash).to.match(/^[0-9a-f]{64}$/)
    const shuffle = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffle)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .toReversed()
          .map(([key, each]) => [key, shuffle(each)]),
      )
    }
    fc.assert(fc.property(fc.jsonValue(), (value) => canonicalHash(shuffle(value)) === canonicalHash(value)))
  })

  it('differs for values, types, orders of elements and keys that differ', () => {
    const values = [{}, [], null, 0, '', '0', false, [1, 2], [2, 1], { a: 1 }, { a: '1' }, { a: 1, b: undefined }]
    const own = JSON.parse('{"__proto__":{"a":1}}') as unknown
    const hashes = [...values, own, { constructor: { a: 1 } }, { 'a.b': 1 }, { a: { b: 1 } }].map(canonicalHash)
    // An undefined field is no field.
    expect(new Set(hashes).size).to.equal(hashes.length - 1)
  })
})
