import { parseJson } from '../../kernel/json.ts'

const MAX_DEPTH = 64

const QUOTE = 0x22
const COLON = 0x3a
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Length of the longest spelling of `"__proto__"`: every character as a \u escape. */
const MAX_PROTO_LENGTH = 9 * 6 + 2

/**
 * Finds nesting that is too deep, keys called `__proto__`, in any spelling, and more objects, lists and other values than `maxValues`,
 * before a JSON text is parsed (D2.4). Returns a message, or `undefined`. Takes time linear in the length. Whether the text is JSON at
 * all is left to `JSON.parse`.
 */
export function findFlaw(text: string, maxValues = Infinity): string | undefined {
  let depth = 0
  let values = 1
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (++depth > MAX_DEPTH) return `the body is nested more than ${MAX_DEPTH} deep; send a flatter one`
      if (!isEmpty(text, at)) values++
    } else if (code === COMMA) {
      values++
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--
    } else if (code === QUOTE) {
      const end = endOfString(text, at)
      if (isProtoKey(text, at, end)) return 'the body has a key __proto__; leave it out'
      at = end
    }
    if (values > maxValues) return `the body has more than ${maxValues} values; send less`
  }
  return undefined
}

function isEmpty(text: string, open: number): boolean {
  const code = text.charCodeAt(afterBlanks(text, open + 1))
  return code === CLOSE_BRACE || code === CLOSE_BRACKET
}

/** Index of the quote that ends the string beginning at `start`, or the length of the text. */
function endOfString(text: string, start: number): number {
  let end = start
  do {
    end = text.indexOf('"', end + 1)
    if (end < 0) return text.length
  } while (isEscaped(text, end))
  return end
}

function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text.charCodeAt(first - 1) === BACKSLASH) first--
  return (at - first) % 2 === 1
}

function isProtoKey(text: string, start: number, end: number): boolean {
  const length = end + 1 - start
  if (length < '"__proto__"'.length || length > MAX_PROTO_LENGTH) return false
  if (unquote(text.slice(start, end + 1)) !== '__proto__') return false
  return text.charCodeAt(afterBlanks(text, end + 1)) === COLON
}

/** The value of a JSON string literal; `undefined` for an invalid one, which makes `JSON.parse` fail later. */
function unquote(literal: string): string | undefined {
  if (!literal.includes('\\')) return literal.slice(1, -1)
  return parseJson(literal) as string | undefined
}

function afterBlanks(text: string, at: number): number {
  let next = at
  while (isBlank(text.charCodeAt(next))) next++
  return next
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
