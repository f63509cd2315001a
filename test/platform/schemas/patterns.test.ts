// Tests patterns.ts and pattern-cost.ts: patterns whose time is measured.

import { createRequire } from 'node:module'
import { expect } from 'chai'
import { compilePattern, PatternError } from '../../../shared/platform/schemas/patterns.ts'

/** The module that the product has loaded. */
const { RE2JS } = createRequire(import.meta.url)('re2js') as typeof import('re2js')

describe('a pattern of a schema', () => {
  const MATCHES: [string, string, boolean][] = [
    ['^[A-Z]{3}-\\d+$', 'ABC-12', true],
    ['^[A-Z]{3}-\\d+$', 'AB-12', false],
    ['b', 'abc', true],
    ['^[\\u4e00-\\u9fa5]+$', '中文', true],
    ['^\\u{1F600}$', '😀', true],
    ['^.$', '😀', true],
    ['^(?<year>\\d{4})$', '2026', true],
    ['^a\\/b\\-c$', 'a/b-c', true],
    ['^\\p{Lu}', 'É', true],
    ['', 'anything', true],
    ['^\\uD83D\\uDE00$', '😀', true],
    ['^[\\uD83D\\uDE00-\\uD83D\\uDE02]$', '😁', true],
    ['^\\s\\S$', '\u00a0x', true],
    ['^[^\\s][\\S]$', 'x\ufeff', false],
    ['^[\\w\\s-.]+$', 'a-b\u3000.', true],
    ['^[[:alpha:]\\s]+$', 'a\vb', true],
    ['^\\s-a$', ' -a', true],
    ['^[\\b]$', '\b', true],
    ['\\ba\\b', 'a', true],
    ['^\\cA\\x41\\0$', '\u0001A\0', true],
    ['^\\\\k<n>$', '\\k<n>', true],
    ['^(?i)a\\z', 'A', true],
  ]
  for (const [pattern, text, isMatch] of MATCHES) {
    it(`${pattern} ${isMatch ? 'matches' : 'does not match'} ${text}`, () => {
      expect(compilePattern(pattern).test(text)).to.equal(isMatch)
    })
  }

  it('ends also where a backtracking engine would not end', () => {
    for (const pattern of ['^(a+)+$', '^(a|a)*$', '(x+x+)+y', '^(a?){50}a{50}$']) {
      const text = `${'a'.repeat(5_000)}${'x'.repeat(1_000)}!`
      expect(compilePattern(pattern).test(text), pattern).to.equal(false)
    }
  })

  for (const pattern of [
    '(?=a)',
    '(?!a)',
    '(?<=a)b',
    '(a)\\1',
    '(',
    '[a',
    'a{2000}',
    '\\p{Letter}',
    '\\p{Script=Greek}',
    '(?<!a)b',
    '(?<n>a)\\k<n>',
    '(?<n>a)[\\k<n>]',
    '(?P<n>a)(?P=n)',
    '(a)\\g1',
    '(?<n>a)|(?<n>b)',
    '(?>a)',
    'a++',
    '\\Aa\\Z',
    '\\h',
    '\\Qa.b\\E',
    '\\u12',
    '\\xg',
    '\\c1',
    '(a{1,500}){1,500}',
  ]) {
    it(`${pattern} is refused with the syntax that is wanted`, () => {
      expect(() => compilePattern(pattern)).to.throw(PatternError, /^must be in RE2 syntax: without lookahead/)
    })
  }

  it('a pattern of 2,500 steps is allowed, a larger one is too complex', () => {
    expect(compilePattern('^.{1,1000}$').test('abc')).to.equal(true)
    expect(() => compilePattern('^.{1,1000}[a-z]{1,1000}$')).to.throw(PatternError, 'is too complex')
  })

  it('a pattern is slow when it was measured to be: a long text is refused then, without being tested', () => {
    const slow = compilePattern('(\\p{L}{0,500}){2}\\d$')
    expect(slow.test('x'.repeat(100))).to.equal(false)
    const testLong = () => slow.test('é'.repeat(800))
    expect(testLong).to.throw(PatternError, 'characters is too long to be tested')
    const engine = RE2JS.prototype.test
    RE2JS.prototype.test = () => expect.fail('a text that is too long was tested')
    try {
      expect(testLong).to.throw(PatternError, 'characters is too long to be tested')
    } finally {
      RE2JS.prototype.test = engine
    }
  })

  const FAST: [string, string][] = [
    ['b', 'a'.repeat(700_000)],
    ['^.{1,1000}$', 'a'.repeat(1_001)],
    ['^[\\w.+-]+@[\\w-]+\\.[\\w.-]+$', 'a'.repeat(5_000)],
    ['^https?://[^\\s/]+(/[^\\s]*)?$', `https://a/${' '.repeat(5_000)}`],
    ['^(\\d{4}-\\d\\d-\\d\\d,?)+$', '2026-11-23,'.repeat(1_000).concat('x')],
  ]
  for (const [pattern, text] of FAST)
    it(`${pattern} is not slow: it tests a text of ${text.length} characters`, () => {
      expect(compilePattern(pattern).test(text)).to.equal(false)
    })
})
