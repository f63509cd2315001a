/**
 * The longest part that the browser lays out at once: each line takes time, and a right-to-left line takes time that
 * grows with the square of its length.
 */
const MOST_WHOLE = { chars: 10_000, lines: 400 } as const
const MOST_OF_PART = { chars: 2_000, lines: 100 } as const
/** A part ends at a blank if one is at most this many characters away. */
const NEAR = 200
/** Where lines are wrapped, at the earliest: an end that is hidden below a part must not seem to be on the screen. */
const COLUMNS = 40
/** A browser lays out all of a field at once, with each change. */
const MOST_LINES = 2_500
const MOST_RIGHT_TO_LEFT = 10_000
/** The browser draws text of one font as one run, and each run takes time. */
const MOST_RUNS = 5_000
const RUNS = /[\t\n -~]+|[\u00a0-\u058f]+|[\u2e80-\ud7ff]+|[\u0590-\u2e7f\ud800-\uffff]+/g
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u

export const FIELD_LIMIT = `A field takes up to ${MOST_LINES} lines, ${MOST_RIGHT_TO_LEFT} characters of a line from right to left, and ${MOST_RUNS} changes between scripts.`

/** Whether a field cannot show a text: it has too many lines, too many changes of the font, or a line from right to left that is too long. */
export const isHeavy = (text: string): boolean =>
  hasMoreLines(text, MOST_LINES) ||
  (text.length > MOST_RUNS && (text.match(RUNS)?.length ?? 0) > MOST_RUNS) ||
  (text.length > MOST_RIGHT_TO_LEFT &&
    text.split('\n').some((line) => line.length > MOST_RIGHT_TO_LEFT && RIGHT_TO_LEFT.test(line)))

export const isLong = (text: string): boolean =>
  text.length > MOST_WHOLE.chars || (text.length > MOST_WHOLE.lines && hasMoreLines(text, MOST_WHOLE.lines))

/** JSON for a field: indented, unless a field cannot show so many lines. */
export function printJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2)
  return isHeavy(text) ? JSON.stringify(value) : text
}

export function hasMoreLines(text: string, most: number): boolean {
  let at = -1
  for (let lines = 0; lines < most; lines++) {
    at = text.indexOf('\n', at + 1)
    if (at < 0) return false
  }
  return true
}

/** The parts of a text, in order: a part ends at a line end if possible, otherwise at a blank, and never within a character or an escape. */
export function partsOf(text: string): string[] {
  const parts: string[] = []
  for (let from = 0; from < text.length; ) {
    const to = endOfPart(text, from)
    parts.push(text.slice(from, to))
    from = to
  }
  return parts
}

function endOfPart(text: string, from: number): number {
  const most = from + MOST_OF_PART.chars
  let end = from
  for (let lines = 0; lines < MOST_OF_PART.lines; lines++) {
    const next = text.indexOf('\n', end) + 1
    if (next === 0 || next > most) return text.length <= most ? text.length : end > from ? end : cutNear(text, most)
    end = next
  }
  return end
}

function cutNear(text: string, most: number): number {
  const before = text.slice(most - NEAR, most)
  const blank = before.lastIndexOf(' ')
  if (blank >= 0) return most - NEAR + blank + 1
  const escape = /\\[^\\]{0,8}$/.exec(before)
  if (escape) return most - escape[0].length
  const around = new Intl.Segmenter().segment(text.slice(most - NEAR, most + NEAR))
  return most - NEAR + (around.containing(NEAR)?.index || NEAR)
}

/** How many lines a part has on a narrow screen. */
export const linesOf = (part: string): number =>
  part
    .replace(/\n$/, '')
    .split('\n')
    .reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / COLUMNS)), 0)
