/** The least length of a title's sentence, because a greeting alone is no title. */
const LEAST = 12

/** The text up to the end of a line or of a sentence. A full stop before a small letter does not end a sentence (`e.g. this`). */
const SENTENCE = new RegExp(
  `^[^]{${LEAST - 1}}[^]*?(?:[.!?…]["'”’)\\]]*(?=\\s+[^\\s\\p{Ll}])|[。！？]|(?=[\\n\\r\\u2028\\u2029]))`,
  'u',
)

/**
 * The first sentence of a prompt, as `shortLine` shows it: the title of the session or run that the prompt begins. Of a
 * long prompt only the beginning is read.
 */
export function titleOf(prompt: string, most: number): string {
  const beginning = beginningOf(prompt, most)
  return shortLine(SENTENCE.exec(beginning)?.[0] ?? beginning, most)
}

/** A text as one line of at most `most` code points. A longer text is cut after a whole word, and ends with `…`. */
export function shortLine(text: string, most: number): string {
  const chars = Array.from(beginningOf(text, most).replaceAll(/\s+/g, ' ').trim())
  if (chars.length <= most) return chars.join('')
  const space = chars.lastIndexOf(' ', most - 1)
  const end = space > most / 2 ? space : most - 1 // A word that takes more than half of the line is cut.
  return `${chars.slice(0, end).join('')}…`
}

/** The beginning of a text that surely contains its first `most` code points, even with some white space among them, and no half character. */
const beginningOf = (text: string, most: number): string =>
  text
    .trimStart()
    .slice(0, 4 * most)
    .replace(/[\ud800-\udbff]$/, '')
