import { jsonrepair } from 'jsonrepair'
import type { OutputProblem } from '../../../kernel/events.ts'
import { escapePointer, isJsonObject, parseJson } from '../../../kernel/json.ts'

/** What had to be done to an answer so that it could be read; the record of the run names it (D6.4). */
export type Repair = 'surrounding_text' | 'syntax' | 'json_text' | 'null_property'

export type Repaired = { value: unknown; repairs: readonly Repair[] }

const MAX_CANDIDATES = 8

/**
 * The JSON values that an answer may mean if it is not plain JSON: objects and arrays that are complete within the text, with
 * their syntax repaired, or encoded as a JSON string. Values that were cut off or abbreviated are never completed. The caller
 * checks which of them fits.
 */
export function repairedValues(answer: string): Repaired[] {
  const text = answer.trim()
  const found = segmentsOf(text).flatMap((segment): Repaired[] => {
    const around: Repair[] = segment === text ? [] : ['surrounding_text']
    const value = parseJson(segment)
    if (value !== undefined) return [{ value, repairs: around }]
    const mended = repairSyntax(segment)
    return mended === undefined ? [] : [{ value: mended, repairs: [...around, 'syntax'] }]
  })
  return [...textsIn(text), ...found].slice(0, MAX_CANDIDATES)
}

/** The values of an answer that is a JSON string with JSON in it. */
function textsIn(text: string): Repaired[] {
  const inner = parseJson(text)
  if (typeof inner !== 'string') return []
  return repairedValues(inner).map(({ value, repairs }) => ({ value, repairs: ['json_text', ...repairs] }))
}

/** jsonrepair takes quadratic time for some longer texts. */
const MAX_REPAIRED_CHARS = 100_000

/** Delimit placeholders for the strings of a segment during its repair: the library misreads brackets and commas in some strings. */
const [OPEN, CLOSE] = ['\uE000', '\uE001']
const STAND_IN = /\uE000(\d+)\uE001/g

/**
 * Repairs the syntax of a segment. A segment with an ellipsis is refused: the library would close the gap, and the
 * value would differ from what the model meant.
 */
function repairSyntax(segment: string): unknown {
  if (segment.length > MAX_REPAIRED_CHARS || segment.includes(OPEN) || !LIKE_JSON.test(segment)) return undefined
  const strings: string[] = []
  const masked = segment.replaceAll(STRINGS, (text) => `"${OPEN}${strings.push(text) - 1}${CLOSE}"`)
  if (/\.\.\.|…/.test(masked)) return undefined
  try {
    return restored(JSON.parse(jsonrepair(masked)), strings)
  } catch {
    return undefined
  }
}

const STRINGS = /"(?:[^"\\]|\\[\s\S])*"/g

function restored(value: unknown, strings: readonly string[]): unknown {
  if (typeof value === 'string') return restoredText(value, strings)
  if (Array.isArray(value)) return value.map((each) => restored(each, strings))
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(([name, each]) => [restoredText(name, strings), restored(each, strings)])
  return Object.fromEntries(entries)
}

/** Replaces placeholders by their strings. A placeholder inside a longer string keeps its characters unchanged. */
function restoredText(text: string, strings: readonly string[]): string {
  const [whole, index] = /^\uE000(\d+)\uE001$/.exec(text) ?? []
  if (whole === undefined) return text.replaceAll(STAND_IN, (_, each) => (strings[Number(each)] ?? '').slice(1, -1))
  const escaped = (strings[Number(index)] ?? '').replaceAll(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1))
  return (parseJson(escaped) ?? JSON.parse(jsonrepair(escaped))) as string
}

/** Matches the beginning of an object or array, but not a bracket in prose. */
const LIKE_JSON = /^(?:\{\s*(?:["'}]|\w+\s*:)|\[\s*(?:["'{[\]\d-]|true|false|null))/

const MAX_STARTS = 32

/** The complete outermost objects and arrays of a text, from left to right. */
function segmentsOf(text: string): string[] {
  const segments: string[] = []
  let at = 0
  for (let starts = 0; starts < MAX_STARTS && segments.length < MAX_CANDIDATES; starts++) {
    const start = text.slice(at).search(/[{[]/)
    if (start < 0) break
    const end = endOf(text, at + start)
    if (end !== undefined) segments.push(text.slice(at + start, end))
    // The value was cut off: objects inside it are only parts.
    if (end === undefined && LIKE_JSON.test(text.slice(at + start, at + start + 100))) break
    at = end ?? at + start + 1
  }
  return segments
}

const CLOSING: Record<string, string> = { '{': '}', '[': ']' }

/** The end of the object or array that begins at `start`; `undefined` when it is not closed, or closed by the wrong bracket. */
function endOf(text: string, start: number): number | undefined {
  const open: (string | undefined)[] = []
  let isString = false
  for (let at = start; at < text.length; at++) {
    const char = text[at] ?? ''
    if (char === '\\' && isString) at++
    else if (char === '"') isString = !isString
    else if (!isString && char in CLOSING) open.push(CLOSING[char])
    else if (!isString && (char === '}' || char === ']') && open.pop() !== char) return undefined
    if (open.length === 0) return at + 1
  }
  return undefined
}

/** The value without the properties that are null where the schema takes no null; `undefined` when there are none. */
export function withoutNulls(value: unknown, problems: readonly OutputProblem[]): unknown {
  const paths = new Set(problems.map(({ path }) => path))
  let hasNulls = false
  const copy = (each: unknown, path: string): unknown => {
    if (Array.isArray(each)) return each.map((item, index) => copy(item, `${path}/${index}`))
    if (!isJsonObject(each)) return each
    const entries = Object.entries(each).flatMap(([name, own]): [string, unknown][] => {
      const ownPath = `${path}/${escapePointer(name)}`
      const isLeftOut = own === null && paths.has(ownPath)
      hasNulls ||= isLeftOut
      return isLeftOut ? [] : [[name, copy(own, ownPath)]]
    })
    return Object.fromEntries(entries)
  }
  const without = copy(value, '')
  return hasNulls ? without : undefined
}
