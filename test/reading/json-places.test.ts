import { expect } from 'chai'
import { placesIn, syntaxErrorAt } from '../../shared/reading/json-places.ts'

const GOOD = '{"a": [1, -0.5e+3, true, null, {}], "ä😀\\u00e9\\"": {"b": [], "c": "x"}, "d": false}'
const STRAY = ['}', ']', ',', ':', '"', '\\', 'x', '0', '-', '\n', '{', '.', '/', '//', '\u0001', '\u00a0', '\ufeff']

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('the place of a syntax error', () => {
  it('every beginning of a text ends too early, at its end', () => {
    for (let end = 0; end < GOOD.length; end++)
      expect(syntaxErrorAt(GOOD.slice(0, end)), GOOD.slice(0, end)).to.equal(end)
  })

  it('with one character too many, replaced or missing, a text has one exactly when JSON.parse finds one', () => {
    let wrong = 0
    for (let at = 0; at < GOOD.length; at++)
      for (const stray of ['', ...STRAY])
        for (const text of [
          GOOD.slice(0, at) + stray + GOOD.slice(at),
          GOOD.slice(0, at) + stray + GOOD.slice(at + 1),
        ]) {
          expect(syntaxErrorAt(text) === undefined, text).to.equal(isJson(text))
          if (!isJson(text)) wrong++
        }
    expect(wrong).to.be.greaterThan(2_000)
  })

  for (const [text, at] of [
    ['{"a": 1 "b"}', 8],
    ['{"a": nope}', 6],
    ['{"a": 01}', 7],
    ['{a: 1}', 1],
    ['[1] x', 4],
    ['[1, // one', 4],
    ['"\\x"', 0],
    ['['.repeat(100_000), 0],
  ] as const)
    it(`in ${text.slice(0, 20)} it is at the first word, number, text or sign that no JSON has there`, () => {
      expect(syntaxErrorAt(text)).to.equal(at)
    })
})

describe('the place of a value in a JSON text', () => {
  const text = '{ "a": [1, {"b/c": "x", "d~e": [true]}], "": {"": null}, "a2": 5 }'
  const at = (json: string, pointer: string) => {
    const span = placesIn(json)(pointer)
    return span && json.slice(span.from, span.to)
  }

  for (const [pointer, found] of [
    ['', text],
    ['/a', '[1, {"b/c": "x", "d~e": [true]}]'],
    ['/a/0', '1'],
    ['/a/1/b~1c', '"x"'],
    ['/a/1/d~0e/0', 'true'],
    ['/', '{"": null}'],
    ['//', 'null'],
    ['/a/1/none/0', '{"b/c": "x", "d~e": [true]}'],
    ['/a/first', '[1, {"b/c": "x", "d~e": [true]}]'],
    ['/none', text],
  ] as const)
    it(`\`${pointer}\` leads to the value, or to the nearest one that holds it`, () => {
      expect(at(text, pointer)).to.equal(found)
    })

  it('values before a mistake have places, and what is nested too deeply has none', () => {
    expect(at('{"a": {"b": 1}, "c" 2', '/a/b')).to.equal('1')
    expect(at('['.repeat(100_000), '/0')).to.equal(undefined)
  })
})
