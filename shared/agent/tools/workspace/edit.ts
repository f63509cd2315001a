import { invalidRequest } from '../../../kernel/errors.ts'
import { quoted } from '../../../kernel/text.ts'
import { FILE_MAX_BYTES } from './file.ts'
import { LineFeedView } from './line-feed-view.ts'

/** The input of the tool `Edit`. */
export type Edit = { path: string; old_string: string; new_string: string; replace_all?: boolean }

const MAX_REPLACEMENTS = 100_000

/**
 * Applies the replacement or throws `invalid_request`. Both texts are literal: `$&` has no meaning. Read shows lines without their
 * carriage return, so an `old_string` without any matches all kinds of line ends, and inserted lines get the line end of the line that
 * they are in. Line ends outside the difference of the two texts are not changed.
 */
export function applyEdit(before: string, edit: Edit): { text: string; count: number } {
  const { path, old_string, new_string } = edit
  const view = new LineFeedView(before, !old_string.includes('\r'))
  const starts = placesOf(view, edit)
  const newLength = before.length + starts.length * (new_string.length - old_string.length)
  const text = newLength > FILE_MAX_BYTES ? undefined : replaced(view, starts, edit)
  if (text === before) throw invalidRequest('old_string and new_string are the same: nothing would change.')
  if (text === undefined || text.length > FILE_MAX_BYTES)
    throw invalidRequest(`${quoted(path)}: the file would grow beyond ${FILE_MAX_BYTES} bytes.`)
  return { text, count: starts.length }
}

/** The places where `old_string` begins. If there are several, and only one has exactly the same characters, that one is meant. */
function placesOf(view: LineFeedView, { path, old_string, replace_all = false }: Edit): number[] {
  const starts = occurrences(view.text, old_string, MAX_REPLACEMENTS + 1)
  if (starts.length === 0) {
    throw invalidRequest(`old_string was not found in ${quoted(path)}. Read the file again and copy the text exactly.`)
  }
  if (starts.length > MAX_REPLACEMENTS)
    throw invalidRequest(`old_string was found more than ${MAX_REPLACEMENTS} times. Give more of the text around it.`)
  if (starts.length === 1 || replace_all) return starts
  const literal = starts.filter((start) => view.between(start, start + old_string.length) === old_string)
  if (literal.length === 1) return literal
  throw invalidRequest(
    `old_string was found ${starts.length} times in ${quoted(path)}. Give more of the text around it, or set replace_all to true.`,
  )
}

function replaced(view: LineFeedView, starts: readonly number[], { old_string, new_string }: Edit): string {
  const { prefix, suffix } = commonEdges(old_string, new_string)
  const inserted = new_string.slice(prefix, new_string.length - suffix)
  const hasLines = view.hidesReturns && inserted.includes('\n')
  const pieces: string[] = []
  let end = 0
  for (const start of starts) {
    const to = start + old_string.length - suffix
    const lineEnd = hasLines ? view.lineEndAt(to) : '\n'
    pieces.push(view.between(end, start + prefix))
    pieces.push(lineEnd === '\n' ? inserted : inserted.replaceAll(/(?<!\r)\n/g, lineEnd))
    end = to
  }
  pieces.push(view.between(end, view.text.length))
  return pieces.join('')
}

/** The lengths of the beginning and the end that both texts share, which are not changed. Carriage returns in the new text are kept. */
function commonEdges(before: string, after: string): { prefix: number; suffix: number } {
  if (after.includes('\r')) return { prefix: 0, suffix: 0 }
  const max = Math.min(before.length, after.length)
  let prefix = 0
  while (prefix < max && before[prefix] === after[prefix]) prefix++
  let suffix = 0
  while (suffix < max - prefix && before.at(-1 - suffix) === after.at(-1 - suffix)) suffix++
  return { prefix, suffix }
}

/**
 * Returns the indexes of the first `max` occurrences of `needle` in `text` that do not overlap. Takes time linear in both
 * lengths (Knuth-Morris-Pratt). V8's `indexOf` is quadratic for texts such as `aaaa…`, and the model chooses both texts.
 */
export function occurrences(text: string, needle: string, max: number): number[] {
  const borders = bordersOf(needle)
  const starts: number[] = []
  let matched = 0
  for (let at = 0; at < text.length && starts.length < max; at += 1) {
    const unit = text.charCodeAt(at)
    while (matched > 0 && unit !== needle.charCodeAt(matched)) matched = borders[matched - 1] ?? 0
    if (unit === needle.charCodeAt(matched)) matched += 1
    if (matched < needle.length) continue
    starts.push(at + 1 - needle.length)
    matched = 0
  }
  return starts
}

/** For each prefix of `needle`, the length of its longest proper prefix that is also its suffix. */
function bordersOf(needle: string): Uint32Array {
  const borders = new Uint32Array(needle.length)
  let length = 0
  for (let at = 1; at < needle.length; at += 1) {
    while (length > 0 && needle.charCodeAt(at) !== needle.charCodeAt(length)) length = borders[length - 1] ?? 0
    if (needle.charCodeAt(at) === needle.charCodeAt(length)) length += 1
    borders[at] = length
  }
  return borders
}
