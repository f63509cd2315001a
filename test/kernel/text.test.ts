import { expect } from 'chai'
import fc from 'fast-check'
import { countChars, quoted, showControls, showHidden, truncate, truncateStart } from '../../shared/kernel/text.ts'

describe('texts that a reader must not misread', () => {
  it('control characters and those that change the direction are shown as escapes, all others as they are', () => {
    expect(showControls('a\n\r\tb\u0000\u001b[31m\u202egnp.exe\u2066\u2028')).to.equal(
      'a\\n\\r\\tb\\u0000\\u001b[31m\\u202egnp.exe\\u2066\\u2028',
    )
    expect(showControls('Grüße שלום 😀👩‍👩‍👧')).to.equal('Grüße שלום 😀👩‍👩‍👧')
  })

  it('of a text of several lines the line ends and tabs stay', () =>
    expect(showHidden('a\u0000\n\tb\r\n\u202ec')).to.equal('a\\u0000\n\tb\\r\n\\u202ec'))

  it('a value of somebody else is shown with 200 characters at most', () => {
    expect(quoted('😀'.repeat(199))).to.equal('😀'.repeat(199))
    expect(quoted('x'.repeat(201))).to.equal(`${'x'.repeat(199)}…`)
  })
})

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
    ['😀😀', 3, '😀😀'],
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

describe('countChars', () => {
  it('D2.6: counts code points, and half of a pair as one', () =>
    expect(['', 'abc', '😀b😀', '\ud83da', '\ude00\ud83d'].map(countChars)).to.deep.equal([0, 3, 3, 2, 2]))
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
    ['😀😀', 3, '😀😀'],
  ]
  for (const [text, maxChars, expected] of cases) {
    it(`D2.6: the last ${maxChars} code points of ${JSON.stringify(text)} are ${JSON.stringify(expected)}`, () =>
      expect(truncateStart(text, maxChars)).to.equal(expected))
  }
})

describe('a text as its code points', () => {
  const texts = fc
    .array(fc.constantFrom('a', '\n', '😀', '\ud83d', '\ude00', '\uffff'), { maxLength: 12 })
    .map((units) => units.join(''))

  it('D2.6: is counted and cut at both ends as an array of them would be', () => {
    fc.assert(
      fc.property(texts, fc.nat(14), (text, max) => {
        const chars = Array.from(text)
        expect(countChars(text)).to.equal(chars.length)
        expect(truncate(text, max, '')).to.equal(chars.slice(0, max).join(''))
        expect(truncate(text, max).endsWith('…')).to.equal(chars.length > max)
        expect(truncateStart(text, max)).to.equal(chars.slice(Math.max(0, chars.length - max)).join(''))
      }),
    )
  })
})
