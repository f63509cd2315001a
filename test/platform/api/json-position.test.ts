import { expect } from 'chai'
import { describeSyntaxError, syntaxErrorAt } from '../../../shared/platform/api/json-position.ts'

const GOOD = '{"a": [1, -0.5e+3, true, null, {}], "ä😀\\u00e9\\"": {"b": [], "c": "x"}, "d": false}'
const STRAY = ['}', ']', ',', ':', '"', '\\', 'x', '0', '-', '\n', '{', '.']

/** Where the parser of the runtime says that the text is wrong; it does not say so for every text. */
function placeFromParser(text: string): number | undefined {
  try {
    JSON.parse(text)
    return expect.fail(`accepted: ${text}`)
  } catch (cause) {
    const { message } = cause as Error
    if (message.includes('end of JSON input')) return text.length
    return Number(/at position (\d+)/.exec(message)?.[1] ?? Number.NaN)
  }
}

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

  it('with one character too many, replaced or missing, it is where JSON.parse finds it', () => {
    let known = 0
    for (let at = 0; at < GOOD.length; at++) {
      const changed = STRAY.flatMap((stray) => [
        GOOD.slice(0, at) + stray + GOOD.slice(at),
        GOOD.slice(0, at) + stray + GOOD.slice(at + 1),
      ])
      for (const text of [...changed, GOOD.slice(0, at) + GOOD.slice(at + 1)].filter((each) => !isJson(each))) {
        const expected = placeFromParser(text)
        if (Number.isNaN(expected)) continue
        known++
        expect(syntaxErrorAt(text), text).to.equal(expected)
      }
    }
    expect(known).to.be.greaterThan(500)
  })

  it('is told by line and column, which counts characters', () => {
    expect(describeSyntaxError('{\n  "a": "😀é" "b"\n}')).to.equal('look at line 2, column 13')
    expect(describeSyntaxError('{"a": 1,}')).to.equal('look at line 1, column 9')
    expect(describeSyntaxError('{"a":\n')).to.equal('it ends too early, at line 2, column 1')
  })
})
