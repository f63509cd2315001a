const NOTHING = /\p{M}|\p{Cf}/u
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u

/** How many columns of a terminal the text takes. The text must contain no control characters. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += widthOfOne(character)
  return width
}

/** The text, cut to `columns` columns. `end` shows that something is left out. */
export function cut(text: string, columns: number, end = '…'): string {
  if (widthOf(text) <= columns) return text
  let kept = ''
  let left = columns - widthOf(end)
  for (const character of text) {
    left -= widthOfOne(character)
    if (left < 0) break
    kept += character
  }
  return columns < widthOf(end) ? '' : kept + end
}

/** The beginning and the end of a long id, in the form that `resolveId` accepts: `run_6b03…c805`. */
export const shortId = (id: string, mark = '…'): string =>
  id.length > 14 ? `${id.slice(0, 8)}${mark}${id.slice(-4)}` : id

export const padEnd = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - widthOf(text)))

export const padStart = (text: string, columns: number): string =>
  ' '.repeat(Math.max(0, columns - widthOf(text))) + text

function widthOfOne(character: string): number {
  if (character < '\u0300') return 1
  if (NOTHING.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}
