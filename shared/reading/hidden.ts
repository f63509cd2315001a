/**
 * Characters that a reader does not see, or that change how the rest is read: controls, direction marks, blanks other than the space,
 * joiners and fillers without a width, tags, private and unassigned characters. Joiners within an emoji, line ends and tabs do not count.
 */
export const HIDDEN =
  /(?![ \n\t]|(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?)\u200d(?=\p{Extended_Pictographic})|(?<=\p{Extended_Pictographic})\ufe0f|(?<=[\d#*])\ufe0f(?=\u20e3))[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** A backslash that may look like the beginning of one of our escapes. */
const ESCAPE_LIKE = /\\(?=u([\da-f]{4})|u\{([\da-f]{5,6})\}|r)/g

/** Characters with another spelling that looks the same. */
const COMPOSED =
  /.\p{M}+|[\u0340-\u0343\u0374\u037e\u0387\u1f71-\u1fff\u2126-\u212b\u2329\u232a\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu

/**
 * Text of several lines for a person who has to decide: hidden characters are shown as escapes, so that two different texts never look
 * alike. Line ends and tabs stay.
 */
export const showHidden = (text: string): string =>
  escapeHidden(
    text.replaceAll(ESCAPE_LIKE, (found, short?: string, long?: string) =>
      isEscape(Number.parseInt(short ?? long ?? 'd', 16)) ? escapeOf(found) : found,
    ),
  )

/** The JSON of `value` in the same form: hidden characters in its strings are escaped. */
export const showJson = (value: unknown, indent?: number): string =>
  escapeHidden(JSON.stringify(value, null, indent) ?? 'null', (char) =>
    char.length === 1 ? unitOf(char.charCodeAt(0)) : unitOf(char.charCodeAt(0)) + unitOf(char.charCodeAt(1)),
  )

/** For text that already has escapes, such as the preview of a permission request: shows the remaining hidden characters. */
export const escapeHidden = (text: string, escape = shown): string => {
  const known = new Map<string, string>() // Escapes of characters are cached, because texts repeat them and checking a character takes time.
  return text.replaceAll(HIDDEN, escape).replaceAll(COMPOSED, (found) => {
    const written = known.get(found) ?? escapeComposed(found, escape)
    known.set(found, written)
    return written
  })
}

function escapeComposed(found: string, escape: typeof shown): string {
  if (found.normalize('NFC') === found) return found
  if (found.length === 1) return escape(found)
  let joined = ''
  for (const char of found) joined += char < '\u0080' ? char : escape(char)
  return joined
}

/** The same, as one line. */
export const showControls = (text: string): string =>
  showHidden(text.replaceAll(/\\(?=[nt])/g, escapeOf)).replaceAll(/[\n\t]/g, (char) => (char === '\n' ? '\\n' : '\\t'))

/** Letters and marks of scripts that are written with joiners. */
const JOINING =
  /[\p{scx=Arab}\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}]/u

/** Text that is only read: hidden characters are shown, but other blanks become a space, and scripts that need joiners keep them. */
export const readable = (text: string): string =>
  /[^\n\t -~]/.test(text)
    ? text.replaceAll(HIDDEN, (char, at: number) => {
        if (/\p{Zs}/u.test(char)) return ' '
        return (char === '\u200c' || char === '\u200d') && JOINING.test(text[at - 1] ?? '') ? char : shown(char)
      })
    : text

/** Whether `showHidden` writes this code as an escape. */
const isEscape = (code: number): boolean => code <= 0x10ffff && (code === 0x5c || escaped(String.fromCodePoint(code)))

const escaped = (char: string) => char.search(HIDDEN) >= 0 || char.normalize('NFC') !== char || /\p{M}/u.test(char)

const shown = (char: string): string => (char === '\r' ? '\\r' : escapeOf(char))

function escapeOf(char: string): string {
  const code = char.codePointAt(0) ?? 0
  return code > 0xffff ? `\\u{${code.toString(16)}}` : unitOf(code)
}

/** The escape of a UTF-16 unit. */
const unitOf = (code: number): string => `\\u${(code + 0x10000).toString(16).slice(1)}`
