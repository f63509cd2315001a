/**
 * Text of models, tools and tenants as it may reach a terminal: without control characters but line ends and tabs, so that no escape
 * sequence is left, and without the marks that reorder what a person reads.
 */
export const plain = (text: string): string => text.replaceAll(HOSTILE, '')

/** The same as one line. */
export const plainLine = (text: string): string => plain(text.replaceAll(/\s+/g, ' ')).trim()

/** JSON whose strings hold no control character, `\u007f` to `\u009f` included, which `JSON.stringify` leaves as they are. */
export const plainJson = (value: unknown, indent?: number): string =>
  (JSON.stringify(value, null, indent) ?? 'null').replaceAll(HOSTILE, (found) => `\\u${codeOf(found)}`)

const HOSTILE = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

const codeOf = (character: string): string => (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')
