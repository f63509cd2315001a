import { type AttachedFile, fileKindOf, MAX_ATTACHMENT_BYTES } from '../../kernel/attachment.ts'
import { type AppError, invalidRequest } from '../../kernel/errors.ts'
import { quoted } from '../../kernel/text.ts'
import { MAX_SHOWN_BYTES, refusalOf } from '../providers/shown-files.ts'
import type { FileRecord } from './records.ts'

/** The most files of a message. */
export const MAX_ATTACHMENTS = 20
/** An image of a few KB may take gigabytes when it is decoded. */
export const MAX_PIXELS = 16_000_000
const MEGABYTE = 1024 * 1024

/**
 * Converts records to the files of a message. Throws `invalid_request` for a file that no model may get (D47).
 * `paramOf` gives the place of a file in the request.
 */
export function attachable(records: readonly FileRecord[], paramOf: (index: number) => string): AttachedFile[] {
  let bytes = 0
  return records.map((record, index) => {
    bytes += record.bytes
    const problem = problemOf(record) ?? (bytes > MAX_SHOWN_BYTES ? TOO_MUCH : undefined)
    if (problem !== undefined) throw unsupported(problem, paramOf(index))
    const { file_id, name, media_type } = record
    return { file_id, name, media_type, bytes: record.bytes }
  })
}

export const unsupported = (message: string, param: string): AppError =>
  invalidRequest(message, { param, code: 'unsupported_attachment' })

const TOO_MUCH = `the attached files have more than ${MAX_SHOWN_BYTES / MEGABYTE} MB together: send fewer of them with one message`

function problemOf(record: FileRecord): string | undefined {
  const { name, media_type, bytes, width = 0, height = 0 } = record
  const kind = fileKindOf(media_type)
  if (kind === undefined) return refusalOf(record, '')
  if (kind !== 'image') return undefined
  if (bytes > MAX_ATTACHMENT_BYTES)
    return `the image ${quoted(name)} has more than ${MAX_ATTACHMENT_BYTES / MEGABYTE} MB: send a smaller one`
  if (width * height <= MAX_PIXELS) return undefined
  return `the image ${quoted(name)} has ${width} x ${height} pixels, more than the ${MAX_PIXELS / 1e6} megapixels that models take: send a smaller one`
}
