import { expect } from 'chai'
import { escapePointer, fitsDepth, frameJson, isJsonObject, jsonBytes, parseJson } from '../../shared/kernel/json.ts'

describe('values of JSON', () => {
  it('a text that is not JSON has no value', () => {
    expect([parseJson('{"a":[1]}'), parseJson('null'), parseJson('{"a"'), parseJson('')]).to.deep.equal([
      { a: [1] },
      null,
      undefined,
      undefined,
    ])
  })

  it('an object is neither null nor an array', () => {
    expect([{}, { a: 1 }, null, [], 'a', undefined].map(isJsonObject)).to.deep.equal([
      true,
      true,
      false,
      false,
      false,
      false,
    ])
  })

  it('the depth counts objects and arrays, the deepest of them', () => {
    for (const flat of ['a', 1, null, true]) expect(fitsDepth(flat, 0), JSON.stringify(flat)).to.equal(true)
    const cases: [value: unknown, depth: number][] = [
      [{}, 1],
      [[1, 'a', null], 1],
      [{ a: 1, b: { c: [] } }, 3],
      [[[], [[null]], 1], 3],
    ]
    for (const [value, depth] of cases)
      expect([fitsDepth(value, depth), fitsDepth(value, depth - 1)], JSON.stringify(value)).to.deep.equal([true, false])
  })

  it('the size is that of the text in UTF-8, but for what escapes add to long texts', () => {
    const whole = [
      {},
      [1, 'é€😀"\n'],
      { a: { b: ['x'.repeat(1_023)] } },
      { a: 'é'.repeat(1_024), b: 'y'.repeat(5_000), c: 1 },
    ]
    for (const value of whole) expect(jsonBytes(value)).to.equal(Buffer.byteLength(JSON.stringify(value)))
    expect(jsonBytes('"'.repeat(1_023))).to.equal(2 * 1_023 + 2)
    expect(jsonBytes('"'.repeat(1_024))).to.equal(1_024 + 2)
  })

  it('a key of a JSON pointer is escaped', () => expect(escapePointer('a/b~c~1')).to.equal('a~1b~0c~01'))

  it('stands on one line of an event stream, for clients too that end lines as Unicode does', () => {
    const value = { 'k\u2028': 'a\u2028b\u2029c\u0085d\n' }
    expect(frameJson(value)).to.match(/^[\x20-\x7e]+$/)
    expect(JSON.parse(frameJson(value))).to.deep.equal(value)
    expect(frameJson({ a: 'é' })).to.equal('{"a":"é"}')
  })
})
