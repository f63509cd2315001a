import { HIDDEN, showJson } from '../../../shared/reading/hidden.ts'

/**
 * Text of models, tools and tenants as it may reach a terminal: without what a person does not see, but line ends and tabs, so that no
 * escape sequence is left and nothing reorders what they read. Another blank is a space.
 */
export const plain = (text: string): string =>
  text.replaceAll(HIDDEN, (found) => (/[\p{Z}]/u.test(found) ? (/[\u2028\u2029]/.test(found) ? '\n' : ' ') : ''))

/** The same as one line. */
export const plainLine = (text: string): string => plain(text.replaceAll(/\s+/g, ' ')).trim()

/** JSON whose strings hold nothing hidden but as an escape. */
export const plainJson = showJson
