import { invalidRequest } from '../../../kernel/errors.ts'
import { quoted } from '../../../kernel/text.ts'
import { FILE_MAX_BYTES } from './file.ts'
import { occurrences } from './occurrences.ts'

/** The input of the tool `Edit`. */
export type Edit = { path: string; old_string: string; new_string: string; replace_all?: boolean }

const MAX_REPLACEMENTS = 100_000

/** Applies the replacement or throws `invalid_request`. Both texts are literal: `$&` has no meaning. */
export function applyEdit(before: string, edit: Edit): { text: string; count: number } {
  const { path, replace_all = false } = edit
  const [oldText, newText] = withLineEndings(before, edit)
  if (oldText === newText) throw invalidRequest('old_string and new_string are the same: nothing would change.')
  const starts = occurrences(before, oldText, MAX_REPLACEMENTS + 1)
  if (starts.length === 0) {
    throw invalidRequest(`old_string was not found in ${quoted(path)}. Read the file again and copy the text exactly.`)
  }
  if (starts.length > 1 && !replace_all) {
    throw invalidRequest(
      `old_string was found ${starts.length} times in ${quoted(path)}. Give more of the text around it, or set replace_all to true.`,
    )
  }
  if (starts.length > MAX_REPLACEMENTS)
    throw invalidRequest(`old_string was found more than ${MAX_REPLACEMENTS} times. Give more of the text around it.`)
  const newLength = before.length + starts.length * (newText.length - oldText.length)
  if (newLength > FILE_MAX_BYTES)
    throw invalidRequest(`${quoted(path)}: the file would grow beyond ${FILE_MAX_BYTES} bytes.`)
  const ends = [0, ...starts.map((start) => start + oldText.length)]
  const text = ends.map((end, index) => before.slice(end, starts[index])).join(newText)
  return { text, count: starts.length }
}

/** Read shows lines without their carriage return, so text that was copied from it has none. In a CRLF file they are added again. */
function withLineEndings(before: string, { old_string, new_string }: Edit): [string, string] {
  if (!before.includes('\r\n') || old_string.includes('\r') || !old_string.includes('\n'))
    return [old_string, new_string]
  return [withCrlf(old_string), withCrlf(new_string)]
}

const withCrlf = (text: string) => text.replaceAll(/\r?\n/g, '\r\n')
