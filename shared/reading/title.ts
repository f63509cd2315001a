/** A sentence has at least this many characters: a greeting alone is no title. */
const LEAST = 12

/** The text up to the end of a line or of a sentence. A mark that a small letter follows ends none (`e.g. this`). */
const SENTENCE = new RegExp(
  `^[^]{${LEAST - 1}}[^]*?(?:[.!?…]["'”’)\\]]*(?=\\s+[^\\s\\p{Ll}])|[。！？]|(?=[\\n\\r\\u2028\\u2029]))`,
  'u',
)

/** The first sentence of a prompt, as `shortLine` shows it: the title of what the prompt begins. Of a long prompt only the beginning is read. */
export function titleOf(prompt: string, most: number): string {
  const beginning = beginningOf(prompt, most)
  return shortLine(SENTENCE.exec(beginning)?.[0] ?? beginning, most)
}

/** A text as one line of at most `most` code points. A longer text is cut behind a whole word, and ends with `…`. */
export function shortLine(text: string, most: number): string {
  const chars = Array.from(beginningOf(text, most).replaceAll(/\s+/g, ' ').trim())
  if (chars.length <= most) return chars.join('')
  const space = chars.lastIndexOf(' ', most - 1)
  const end = space > most / 2 ? space : most - 1 // A word that takes more than half of it is cut.
  return `${chars.slice(0, end).join('')}…`
}

/** What can be of its first `most` code points, with some white space among them, and half of no character. */
const beginningOf = (text: string, most: number): string =>
  text
    .trimStart()
    .slice(0, 4 * most)
    .replace(/[\ud800-\udbff]$/, '')
