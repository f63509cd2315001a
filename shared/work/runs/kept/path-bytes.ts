import { join } from 'node:path'

/** A byte that belongs to no UTF-8 character is written as one of U+DC80 to U+DCFF: a valid text never contains one of these alone. */
const ESCAPE = 0xdc00
const ESCAPED = /[\udc80-\udcff]/gu
/** The longest UTF-8 character has this many bytes. */
const MAX_CHARACTER_BYTES = 4

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The name of a file as text, even if its bytes are not UTF-8. */
export function textOf(bytes: Buffer): string {
  const text = bytes.toString()
  if (!text.includes('\ufffd') || Buffer.from(text).equals(bytes)) return text
  let escaped = ''
  for (let at = 0; at < bytes.length; ) {
    const character = characterAt(bytes, at)
    escaped += character ?? String.fromCharCode(ESCAPE + (bytes[at] ?? 0))
    at += character === undefined ? 1 : Buffer.byteLength(character)
  }
  return escaped
}

function characterAt(bytes: Buffer, at: number): string | undefined {
  for (let length = 1; length <= MAX_CHARACTER_BYTES; length++) {
    try {
      return decoder.decode(bytes.subarray(at, at + length))
    } catch {} // The character is longer, or these bytes are not UTF-8.
  }
  return undefined
}

/** Returns the bytes that `textOf` was given, if they are not UTF-8; otherwise the text itself. */
export function bytesOf(text: string): string | Buffer {
  if (text.isWellFormed()) return text
  const parts = text.split(/([\udc80-\udcff])/u)
  return Buffer.concat(
    parts.map((part) => (part.match(ESCAPED) ? Buffer.of(part.charCodeAt(0) - ESCAPE) : Buffer.from(part))),
  )
}

/** The place of a kept path on this machine. */
export function placeOf(root: string, path: string): string | Buffer {
  const bytes = bytesOf(path)
  return typeof bytes === 'string' ? join(root, bytes) : Buffer.concat([Buffer.from(`${root}/`), bytes])
}

/** The path for display: each byte that is not UTF-8 is replaced by a visible character. */
export const shownPath = (path: string): string => path.replaceAll(ESCAPED, '\ufffd')
