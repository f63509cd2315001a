import type { RE2JS } from 're2js'
import { invalidRequest } from '../../../kernel/errors.ts'
import { quoted } from '../../../kernel/text.ts'

const GLOB_CHARS = 256
const REGEX_CHARS = 500
const GLOB_PROGRAM = 500
const REGEX_PROGRAM = 1_000
/** The limit for characters times program size in one match: about 20 ms where the engine has to simulate every state. */
const MATCH_WORK = 150_000
const MAX_PIECE = 16_384

/** A regular expression that is tested in linear time. `test` accepts at most `pieceChars` characters at once. */
export type LinePattern = { test(piece: string): boolean; pieceChars: number }

/** Compiles a regular expression in RE2's syntax. Throws `invalid_request` with the error in the expression. */
export async function compileRegex(pattern: string): Promise<LinePattern> {
  if (pattern.length > REGEX_CHARS) throw invalidRequest(`The pattern is longer than ${REGEX_CHARS} characters.`)
  const regex = await compile(pattern, REGEX_PROGRAM)
  const pieceChars = Math.min(MAX_PIECE, Math.floor(MATCH_WORK / Math.max(regex.programSize(), 1)))
  return { test: (piece) => regex.test(piece), pieceChars }
}

/** Compiles a glob (`*`, `**`, `?`, `[a-z]`, `{a,b}`) into a test of relative paths. Throws `invalid_request`. */
export async function compileGlob(glob: string): Promise<(path: string) => boolean> {
  if (glob.length > GLOB_CHARS) throw invalidRequest(`The glob is longer than ${GLOB_CHARS} characters.`)
  const names = glob.split('/')
  if (glob.startsWith('/') || names.includes('..')) {
    throw invalidRequest(`${quoted(glob)}: give a glob relative to the workspace, without "..".`)
  }
  // Loaded at first use, because most processes never search.
  const { default: picomatch } = await import('picomatch')
  const { source } = picomatch.makeRe(glob, { dot: true, noextglob: true, nonegate: true, posix: true })
  const regex = await compile(withoutDotGuards(source), GLOB_PROGRAM)
  return (path) => regex.test(path)
}

/**
 * Removes picomatch's lookaheads, which RE2 does not know. Picomatch only translates the glob, because its own expressions
 * backtrack and a model may write any glob. The lookaheads exclude the names `.`, `..` and the empty name, which no path from
 * a folder walk contains.
 */
function withoutDotGuards(source: string): string {
  return source
    .replaceAll('(?!(?:^|\\/)\\.{1,2}(?:\\/|$))', '')
    .replaceAll('(?!\\.{1,2}(?:\\/|$))', '')
    .replaceAll('(?!\\.{0,1}(?:\\/|$))', '')
    .replaceAll('(?=.)', '')
}

async function compile(source: string, maxProgram: number): Promise<RE2JS> {
  // Loaded at first use, because most processes never search.
  const { RE2JS, RE2JSException } = await import('re2js')
  try {
    const regex = RE2JS.compile(source)
    if (regex.programSize() > maxProgram)
      throw invalidRequest('The pattern is too complex. Search for something simpler.')
    return regex
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    throw invalidRequest(
      `The pattern is not valid: ${cause.message}. It must be in RE2 syntax, without lookaround or backreferences.`,
    )
  }
}
