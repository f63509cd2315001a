import { expect } from 'chai'
import { mistakeIn, placeOf } from '../../../../services/console/parts/editor/json-places.ts'

const at = (text: string, pointer: string) => {
  const span = placeOf(text, pointer)
  return span && text.slice(span.from, span.to)
}

describe('the place of a value in a JSON text', () => {
  const text = '{ "a": [1, {"b/c": "x", "d~e": [true]}], "": {"": null}, "a2": 5 }'

  for (const [pointer, found] of [
    ['', text],
    ['/a', '[1, {"b/c": "x", "d~e": [true]}]'],
    ['/a/0', '1'],
    ['/a/1/b~1c', '"x"'],
    ['/a/1/d~0e/0', 'true'],
    ['/', '{"": null}'],
    ['//', 'null'],
    ['/a/1/none/0', '{"b/c": "x", "d~e": [true]}'],
    ['/none', text],
  ] as const)
    it(`\`${pointer}\` leads to the value, or to the nearest one that holds it`, () => {
      expect(at(text, pointer)).to.equal(found)
    })

  it('values before a mistake have places', () => {
    expect(at('{"a": {"b": 1}, "c" 2', '/a/b')).to.equal('1')
    expect(mistakeIn('{"a": 1 "b"')).to.equal(8)
    expect(mistakeIn('{"a": 1}')).to.equal(undefined)
  })

  it('names of any length and number cost no more than their text', () => {
    const long = `{"${'x'.repeat(30_000)}": [${'1,'.repeat(15_000)}1]}`
    const before = process.cpuUsage()
    expect(at(long, `/${'x'.repeat(30_000)}/14999`)).to.equal('1')
    expect(process.cpuUsage(before).user / 1_000, 'ms').to.be.below(1_000)
  })
})
