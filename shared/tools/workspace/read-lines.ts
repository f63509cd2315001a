import type { FileHandle } from 'node:fs/promises'
import type { TextDecoder } from 'node:util'
import { invalidRequest } from '../../errors.ts'
import { binaryFile, textDecoder } from './file.ts'

/** Which lines of which file; `offset` counts from 1. */
export type Excerpt = { path: string; offset: number; limit: number; maxBytes: number }

/**
 * The lines as asked, and why they end there: with the `file`, because the `page` is full and more follows, or within a
 * `line` that alone is longer than the page. `total` counts the file's lines as far as it was read.
 */
export type Lines = { lines: string[]; total: number; end: 'file' | 'page' | 'line' }

const CHUNK_BYTES = 64 * 1024
/** How far into a file an offset may reach. */
const SCAN_MAX_BYTES = 64 * 1024 * 1024

/** Reads an excerpt without holding more of the file than the excerpt and one chunk. */
export async function readLines(handle: FileHandle, excerpt: Excerpt, signal: AbortSignal): Promise<Lines> {
  const page: Page = { lines: [], bytes: 0, total: 0, end: 'file' }
  let rest = ''
  for await (const text of chunks(handle, excerpt.path, signal)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    if (lines.some((line) => isFull(page, excerpt, line))) return page
    // Of a line before the excerpt only its being there matters; one in it may not outgrow the page.
    if (page.total + 1 < excerpt.offset) rest = rest.slice(0, 1)
    else if (rest.length > excerpt.maxBytes) break
  }
  if (rest !== '') isFull(page, excerpt, rest)
  return page
}

type Page = Lines & { bytes: number }

/** Adds the file's next line where it is wanted; true when the page takes no more. */
function isFull(page: Page, { offset, limit, maxBytes }: Excerpt, line: string): boolean {
  if (page.total + 1 >= offset) {
    page.bytes += Buffer.byteLength(line) + 1
    page.end = page.lines.length === limit || page.bytes > maxBytes ? 'page' : 'file'
    if (page.end === 'page' && page.lines.length === 0) {
      page.end = 'line'
      page.lines.push(
        Buffer.from(line)
          .toString('utf8', 0, maxBytes)
          .replace(/\uFFFD$/, ''),
      )
    }
    if (page.end !== 'file') return true
    page.lines.push(line.endsWith('\r') ? line.slice(0, -1) : line)
  }
  page.total += 1
  return false
}

/** Decoded chunks of the file; throws for a binary file and for one that is scanned too far. */
async function* chunks(handle: FileHandle, path: string, signal: AbortSignal): AsyncGenerator<string> {
  const buffer = Buffer.alloc(CHUNK_BYTES)
  let decoder: TextDecoder | undefined
  for (let position = 0; ; ) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position)
    const bytes = buffer.subarray(0, bytesRead)
    decoder ??= textDecoder(bytes.subarray(0, 8_192), path)
    yield decodeChunk(decoder, bytes, path)
    if (bytesRead === 0) return
    position += bytesRead
    if (position > SCAN_MAX_BYTES) {
      throw invalidRequest(
        `${path}: only the first ${SCAN_MAX_BYTES / 1024 / 1024} MiB of a file can be read. Use Grep.`,
      )
    }
  }
}

/** No bytes is the end of the file: half a character left over there makes it binary. */
function decodeChunk(decoder: TextDecoder, bytes: Uint8Array, path: string): string {
  try {
    return decoder.decode(bytes, { stream: bytes.length > 0 })
  } catch (cause) {
    throw cause instanceof TypeError ? binaryFile(path) : cause
  }
}
