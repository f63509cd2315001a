import { isUtf8 } from 'node:buffer'
import { open } from 'node:fs/promises'
import { fileKindOf } from '../../kernel/attachment.ts'

/** Enough to recognize every format, and to distinguish text from other bytes. */
const HEAD_BYTES = 8 * 1024
export const IMAGE_HEAD_BYTES = 512 * 1024

/** Types of text, which have no signature: the name decides among them. */
const TEXT_TYPES: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  css: 'text/css',
  htm: 'text/html',
  html: 'text/html',
  js: 'text/javascript',
  json: 'application/json',
  jsonl: 'application/jsonl',
  md: 'text/markdown',
  svg: 'image/svg+xml',
  tsv: 'text/tab-separated-values',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
}

export type FileFacts = { media_type: string; width?: number; height?: number }

/**
 * The facts that the first bytes of a file show: its media type, and the size of an image. The name of the file decides only between
 * types of text; other unknown bytes are `application/octet-stream` (D43).
 */
export async function factsOf(head: Buffer, name: string): Promise<FileFacts> {
  const media_type = await mediaTypeOf(head.subarray(0, HEAD_BYTES), name)
  return fileKindOf(media_type) === 'image' ? { media_type, ...(await sizeOf(head)) } : { media_type }
}

async function mediaTypeOf(head: Buffer, name: string): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type')
  const found = await fileTypeFromBuffer(head)
  if (found !== undefined && !found.mime.startsWith('application/xml')) return found.mime.replace(/;.*/, '')
  if (!isText(head)) return 'application/octet-stream'
  return TEXT_TYPES[/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''] ?? found?.mime ?? 'text/plain'
}

/** Reads the size from the header only, without decoding the image. `undefined` if the header cannot be read. */
async function sizeOf(head: Buffer): Promise<{ width: number; height: number } | undefined> {
  const { imageSize } = await import('image-size')
  try {
    const { width, height } = imageSize(head)
    return { width, height }
  } catch {
    return undefined
  }
}

/** The first bytes of a file: a JPEG may have its size after a preview and a profile. */
export async function headOf(path: string): Promise<Buffer> {
  await using file = await open(path)
  const { bytesRead, buffer } = await file.read(Buffer.alloc(IMAGE_HEAD_BYTES), 0, IMAGE_HEAD_BYTES, 0)
  return buffer.subarray(0, bytesRead)
}

/** Whether the bytes are UTF-8 without control characters. A character that the end of a full head cuts is left out. */
function isText(head: Buffer): boolean {
  if (head.some((byte) => byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0c && byte !== 0x0d)) return false
  const cuts = head.length === HEAD_BYTES ? [0, 1, 2, 3] : [0]
  return cuts.some((cut) => isUtf8(head.subarray(0, head.length - cut)))
}
