import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'
import { quoted } from '../../kernel/text.ts'
import { PatternCost } from './pattern-cost.ts'

/** The largest program of a pattern, because it takes memory; `.{1,1000}` has 2,000. */
const MAX_PROGRAM = 2_500

/** Thrown for a pattern that cannot be used, or a text that is too long for its pattern. The message is the end of a sentence. */
export class PatternError extends Error {
  readonly pattern: string

  constructor(pattern: string, message: string) {
    super(message)
    this.name = 'PatternError'
    this.pattern = pattern
  }
}

export type TextPattern = { test(text: string): boolean; toString(): string }

/**
 * Compiles a `pattern` or a key of `patternProperties`, in the syntax that JavaScript and RE2 share. A test takes time linear in
 * the text. Throws `PatternError`; `test` throws it for a text that, by measurement, is too long to be tested in time.
 */
export function compilePattern(pattern: string): TextPattern {
  const regex = compile(pattern)
  if (regex.programSize() > MAX_PROGRAM) throw new PatternError(pattern, 'is too complex: use smaller repetitions')
  const cost = new PatternCost(regex)
  return {
    test(text) {
      if (text.length <= cost.maxCharsFor(text)) return cost.test(text)
      const fact = `a text of ${text.length} characters is too long to be tested with the pattern ${quoted(pattern)}`
      throw new PatternError(pattern, `${fact}: at most ${cost.maxCharsFor(text)} characters can be tested`)
    },
    toString: () => pattern,
  }
}

const load = createRequire(import.meta.url) // Loaded at first use, because most schemas have no pattern; ajv compiles synchronously.

const SYNTAX =
  'must be in RE2 syntax: without lookahead, lookbehind and backreferences, with repetitions of at most 1000, with each group name once, with \\p{L} and \\p{Greek} instead of \\p{Letter} and \\p{Script=Greek}'

function compile(pattern: string): RE2JS {
  const { RE2JS, RE2JSException } = load('re2js') as typeof import('re2js')
  const source = withJavaScriptMeaning(pattern)
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source))
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    throw new PatternError(pattern, SYNTAX)
  }
}

/** A pair of surrogates, another escape, a class of RE2 inside a class, and the ends of a class. */
const TOKENS =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\(?:u\{[\da-fA-F]+\}|u[\da-fA-F]{4}|x\{[\da-fA-F]+\}|x[\da-fA-F]{2}|c[A-Za-z]|[sS]-|[^])|\[:\^?\w+:\]|[[\]]/g
const LETTER_ESCAPES = 'AabBdDfnpPrsStvwWz'
/** The white space of JavaScript, which is more than RE2's, as ranges of a class. */
const SPACE = '\\t-\\r\\x20\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}'
const NOT_SPACE =
  '\\x00-\\x08\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}'

/**
 * Replaces the escapes that have another meaning in RE2 than in JavaScript. Throws `PatternError` for a letter that is no escape,
 * such as `\k` of a backreference by name: the engine would look for the letter itself.
 */
function withJavaScriptMeaning(pattern: string): string {
  let isInClass = false
  return pattern.replace(TOKENS, (token) => {
    if (token === '[' || token === ']') isInClass = token === '['
    if (/^\\u.{4}\\u/.test(token)) return `\\u{${codePointOf(token).toString(16)}}`
    if (token === '\\b' && isInClass) return '\\x08'
    if (/^\\[sS]/.test(token)) return spaceClass(token, isInClass)
    if (/^\\[A-Za-z]$/.test(token) && !LETTER_ESCAPES.includes(token.slice(1)))
      throw new PatternError(pattern, `${SYNTAX}; ${token} is none of its escapes`)
    return token
  })
}

const codePointOf = (pair: string): number =>
  String.fromCharCode(Number.parseInt(pair.slice(2, 6), 16), Number.parseInt(pair.slice(8), 16)).codePointAt(0) ?? 0

/** `token` is `\s` or `\S`, with the `-` after it, which is then a hyphen and not a range. */
function spaceClass(token: string, isInClass: boolean): string {
  const ranges = token.startsWith('\\s') ? SPACE : NOT_SPACE
  const hyphen = token.endsWith('-') ? '\\-' : ''
  return isInClass ? `${ranges}${hyphen}` : `[${ranges}]${hyphen}`
}
