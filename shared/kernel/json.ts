import type { JsonObject } from './events.ts'

/** The value that `text` holds as JSON, or `undefined` when it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Neither null nor an array. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a value of JSON has at most `depth` levels of objects and arrays. Rendering a much deeper one overflows the stack. */
export function fitsDepth(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((inner) => fitsDepth(inner, depth - 1))
}

const LONG_CHARS = 1024

/** Size of a value as JSON, in bytes. Long texts in it are not copied, and what escaping adds to them is not counted. */
export function jsonBytes(value: unknown): number {
  let longBytes = 0
  const rest = JSON.stringify(value, (_name, each: unknown) => {
    if (typeof each !== 'string' || each.length < LONG_CHARS) return each
    longBytes += Buffer.byteLength(each)
    return ''
  })
  return longBytes + Buffer.byteLength(rest)
}

/** Escapes a key for a JSON pointer. */
export const escapePointer = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')

const LINE_ENDS = /[\u0085\u2028\u2029]/
const escapedLineEnd = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * The value as JSON for the `data:` of an event stream. Some clients end a line at every line separator of Unicode, and JSON does not escape
 * three of them, so they are escaped here.
 */
export function frameJson(value: object | string): string {
  return withoutLineEnds(JSON.stringify(value))
}

/** Escapes the line separators in JSON text, as `frameJson` does. */
export const withoutLineEnds = (json: string): string =>
  LINE_ENDS.test(json) ? json.replaceAll(new RegExp(LINE_ENDS, 'g'), escapedLineEnd) : json
