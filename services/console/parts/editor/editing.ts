/** A change of a text: the part from `from` to `to` is replaced, and then the range `select` is selected. */
export type Edit = { from: number; to: number; insert: string; select: Selected }

export type Selected = readonly [from: number, to: number]

const UNIT = '  '

/** Tab indents: a selection of several lines as a whole, else up to the next step. */
export function indent(text: string, [from, to]: Selected): Edit {
  if (!text.slice(from, to).includes('\n')) {
    const column = from - lineStart(text, from)
    const insert = UNIT.slice(column % UNIT.length)
    return { from, to, insert, select: [from + insert.length, from + insert.length] }
  }
  return changeLines(text, [from, to], (line) => (line === '' ? line : UNIT + line))
}

/** Shift and Tab remove one step of indentation. */
export const outdent = (text: string, selected: Selected): Edit =>
  changeLines(text, selected, (line) => line.replace(/^ {1,2}|^\t/, ''))

/** Enter indents the next line like this one, and one step more after an opening bracket. */
export function breakLine(text: string, [from, to]: Selected): Edit {
  const before = text.slice(lineStart(text, from), from)
  const [blanks = ''] = /^[ \t]*/.exec(before) ?? []
  const isOpening = /[[{]\s*$/.test(before)
  const begin = `\n${blanks}${isOpening ? UNIT : ''}`
  const isClosing = isOpening && /^[ \t]*[\]}]/.test(text.slice(to))
  const caret = from + begin.length
  return { from, to, insert: begin + (isClosing ? `\n${blanks}` : ''), select: [caret, caret] }
}

/** A closing bracket at the start of a line gets the indentation of the line with its opening bracket. `undefined` if nothing must move. */
export function closeBracket(text: string, [from, to]: Selected, bracket: string): Edit | undefined {
  const start = lineStart(text, from)
  const before = text.slice(start, from)
  if (!/^[ \t]+$/.test(before)) return undefined
  const insert = before.replace(/ {1,2}$|\t$/, '') + bracket
  return { from: start, to, insert, select: [start + insert.length, start + insert.length] }
}

const lineStart = (text: string, index: number): number => text.lastIndexOf('\n', index - 1) + 1

/** Changes all lines of a selection, and keeps the selection. */
function changeLines(text: string, [from, to]: Selected, change: (line: string) => string): Edit {
  const start = lineStart(text, from)
  const lines = text.slice(start, to).split('\n')
  const changed = lines.map(change)
  const insert = changed.join('\n')
  const shift = (changed[0]?.length ?? 0) - (lines[0]?.length ?? 0)
  return { from: start, to, insert, select: [Math.max(start, from + shift), start + insert.length] }
}
