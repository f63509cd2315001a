import { HIDDEN, showJson } from '../../../shared/reading/hidden.ts'

/**
 * Makes text of models, tools and tenants safe for a terminal: removes all invisible characters except line ends and tabs, so that no
 * escape sequence is left and nothing reorders the visible text. Any other blank becomes a space.
 */
export const plain = (text: string): string =>
  text.replaceAll(HIDDEN, (found) => (/[\p{Z}]/u.test(found) ? (/[\u2028\u2029]/.test(found) ? '\n' : ' ') : ''))

/** The same, as one line. */
export const plainLine = (text: string): string => plain(text.replaceAll(/\s+/g, ' ')).trim()

/** JSON in which all invisible characters are escaped. */
export const plainJson = showJson
