/**
 * Writes data of a prompt as one line of JSON, in which nothing can begin another line or a tag: line separators and angle brackets are
 * escaped. `JSON.parse` reads it back.
 */
export const dataLine = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/[<>\u0085\u2028\u2029]/g, (char) => `\\u${hexOf(char)}`)

const hexOf = (char: string): string => char.charCodeAt(0).toString(16).padStart(4, '0')

/**
 * Puts data of a prompt between tags, `attributes` into the first one. If the data contains something like one of these tags, in any spelling, its
 * `<` is written as `&lt;`, so that the data can neither end its block nor open another one; an existing `&lt;` becomes `&amp;lt;`.
 */
export function inTags(tag: string, text: string, attributes: Readonly<Record<string, string>> = {}): string {
  const named = Object.entries(attributes).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
  const blank = '[\\s\\p{Cf}]*'
  const mark = new RegExp(`(?:<|&((?:amp;)*)lt;)(?=${blank}/?${blank}${tag})`, 'giu')
  const escape = (part: string) =>
    part.replaceAll(mark, (_found, again?: string) => (again === undefined ? '&lt;' : `&amp;${again}lt;`))
  return `<${tag}${escape(named.join(''))}>\n${escape(text)}\n</${tag}>`
}
