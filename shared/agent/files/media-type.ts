import { isUtf8 } from 'node:buffer'
import { open } from 'node:fs/promises'

/** Enough to know every format by, and to tell text from other bytes. */
const HEAD_BYTES = 8 * 1024

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

/** The media type of a file by its bytes (D43). Its name counts among the types of text only; other unknown bytes are `application/octet-stream`. */
export async function mediaTypeOf(path: string, name: string): Promise<string> {
  const head = await headOf(path)
  const { fileTypeFromBuffer } = await import('file-type')
  const found = await fileTypeFromBuffer(head)
  if (found !== undefined && !found.mime.startsWith('application/xml')) return found.mime
  if (!isText(head)) return 'application/octet-stream'
  return TEXT_TYPES[/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''] ?? found?.mime ?? 'text/plain'
}

async function headOf(path: string): Promise<Buffer> {
  await using file = await open(path)
  const { bytesRead, buffer } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  return buffer.subarray(0, bytesRead)
}

/** UTF-8 without control characters. A character that the end of a full head cuts is left out. */
function isText(head: Buffer): boolean {
  if (head.some((byte) => byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0c && byte !== 0x0d)) return false
  const cuts = head.length === HEAD_BYTES ? [0, 1, 2, 3] : [0]
  return cuts.some((cut) => isUtf8(head.subarray(0, head.length - cut)))
}
