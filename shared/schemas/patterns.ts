import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

/** The size of a pattern's program; `.{1,1000}` has 2,000. */
const MAX_PROGRAM = 2_500
/** The limit for characters times program size in one test: about 200 ms where the engine has to simulate every state. */
const MAX_WORK = 2_000_000

/** A pattern that cannot be used, or a text that is too long for its pattern. The message is the end of a sentence. */
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
 * the text. Throws `PatternError`, also from `test`.
 */
export function compilePattern(pattern: string): TextPattern {
  const regex = compile(pattern)
  const program = Math.max(regex.programSize(), 1)
  if (program > MAX_PROGRAM) throw new PatternError(pattern, 'is too complex: use smaller repetitions')
  const maxChars = Math.floor(MAX_WORK / program)
  return {
    test(text) {
      if (text.length <= maxChars) return regex.test(text)
      const fact = `a text of ${text.length} characters is too long to be tested with the pattern ${pattern}`
      throw new PatternError(pattern, `${fact}: at most ${maxChars} characters can be tested`)
    },
    toString: () => pattern,
  }
}

const load = createRequire(import.meta.url) // Loaded at first use, because most schemas have no pattern; ajv compiles synchronously.

function compile(pattern: string): RE2JS {
  const { RE2JS, RE2JSException } = load('re2js') as typeof import('re2js')
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern))
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    throw new PatternError(
      pattern,
      'must be in RE2 syntax: without lookahead, lookbehind and backreferences, with repetitions of at most 1000, with \\p{L} instead of \\p{Letter}',
    )
  }
}
