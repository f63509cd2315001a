export { showControls, showHidden } from '../reading/hidden.ts'

/** The first `maxChars` code points of `text` (D2.6), with `mark` appended when something was cut off. */
export function truncate(text: string, maxChars: number, mark = '…'): string {
  const end = endOf(text, maxChars)
  return end === text.length ? text : text.slice(0, end) + mark
}

const MAX_QUOTED_CHARS = 200

/** Shortens a foreign value for use in a message. */
export const quoted = (text: string): string => truncate(text, MAX_QUOTED_CHARS - 1)

const MAX_LISTED = 20

/** Lists foreign names for use in a message. */
export function listOf(names: readonly string[]): string {
  const listed = names.slice(0, MAX_LISTED).map((name) => JSON.stringify(quoted(name)))
  const more = names.length - listed.length
  return `${listed.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** The last `maxChars` code points of `text`. */
export function truncateStart(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  let start = text.length
  for (let left = maxChars; left > 0 && start > 0; left--) start -= isPair(text, start - 2) ? 2 : 1
  return text.slice(start)
}

/** How many code points `text` has. */
export function countChars(text: string): number {
  let count = 0
  for (let index = 0; index < text.length; index += isPair(text, index) ? 2 : 1) count++
  return count
}

/** The UTF-16 index after the first `maxChars` code points. */
function endOf(text: string, maxChars: number): number {
  if (text.length <= maxChars) return text.length
  let end = 0
  for (let left = maxChars; left > 0 && end < text.length; left--) end += isPair(text, end) ? 2 : 1
  return end
}

const isPair = (text: string, index: number): boolean => (text.codePointAt(index) ?? 0) > 0xffff
