import { expect } from 'chai'
import { truncate, truncateStart } from '../../shared/text.ts'

describe('truncate', () => {
  const cases: [text: string, maxChars: number, expected: string][] = [
    ['abc', 3, 'abc'],
    ['abcd', 3, 'abc…'],
    ['', 0, ''],
    ['a', 0, '…'],
    ['😀😀', 2, '😀😀'],
    ['😀😀', 1, '😀…'],
    ['a😀b', 2, 'a😀…'],
    ['a😀', 3, 'a😀'],
    ['\ud83d😀', 1, '\ud83d…'],
  ]
  for (const [text, maxChars, expected] of cases) {
    it(`D2.6: ${JSON.stringify(text)} to ${maxChars} code points is ${JSON.stringify(expected)}`, () =>
      expect(truncate(text, maxChars)).to.equal(expected))
  }

  it('appends the given mark, and nothing when nothing was cut off', () => {
    expect(truncate('abcd', 3, ' [cut]')).to.equal('abc [cut]')
    expect(truncate('abc', 3, ' [cut]')).to.equal('abc')
  })
})

describe('truncateStart', () => {
  const cases: [text: string, maxChars: number, expected: string][] = [
    ['abc', 3, 'abc'],
    ['abcd', 3, 'bcd'],
    ['abcd', 0, ''],
    ['😀😀', 1, '😀'],
    ['😀b', 2, '😀b'],
    ['a😀b', 2, '😀b'],
    ['a😀b', 1, 'b'],
  ]
  for (const [text, maxChars, expected] of cases) {
    it(`D2.6: the last ${maxChars} code points of ${JSON.stringify(text)} are ${JSON.stringify(expected)}`, () =>
      expect(truncateStart(text, maxChars)).to.equal(expected))
  }
})
