import type { FileHandle } from 'node:fs/promises'
import type { TextDecoder } from 'node:util'
import { invalidRequest } from '../../../kernel/errors.ts'
import { binaryFile, textDecoder } from './file.ts'

/** Selects lines of a file. `offset` is the number of the first line, counted from 1; `path` is for error texts. */
export type Excerpt = { path: string; offset: number; limit: number; maxBytes: number }

/**
 * The selected lines and where they end: at the end of the `file`, at the end of the `page` although more lines follow, or
 * within a `line` that alone is longer than the page. `total` is the number of lines that were read completely.
 */
export type Lines = { lines: string[]; total: number; end: 'file' | 'page' | 'line' }

const CHUNK_BYTES = 64 * 1024
/** How far a file is read to find the offset. */
const SCAN_MAX_BYTES = 64 * 1024 * 1024

/** Reads an excerpt. Holds no more of the file in memory than the excerpt and one chunk. */
export async function readLines(handle: FileHandle, excerpt: Excerpt, signal: AbortSignal): Promise<Lines> {
  const page: Page = { lines: [], bytes: 0, total: 0, end: 'file' }
  let rest = ''
  for await (const text of decodedChunks(handle, excerpt.path, signal)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    if (lines.some((line) => !addLine(page, excerpt, line))) return page
    // A line before the excerpt is only counted, so one character of it is enough.
    if (page.total + 1 < excerpt.offset) rest = rest.slice(0, 1)
    else if (rest.length > excerpt.maxBytes) break
  }
  if (rest !== '') addLine(page, excerpt, rest)
  return page
}

type Page = Lines & { bytes: number }

/** Counts the next line of the file and adds it to the page if it belongs to the excerpt. Returns `false` when the page is full. */
function addLine(page: Page, { offset, limit, maxBytes }: Excerpt, line: string): boolean {
  if (page.total + 1 >= offset) {
    page.bytes += Buffer.byteLength(line) + 1
    if (page.lines.length === limit || page.bytes > maxBytes) {
      page.end = page.lines.length === 0 ? 'line' : 'page'
      if (page.end === 'line') page.lines.push(firstBytes(line, maxBytes))
      return false
    }
    page.lines.push(line.endsWith('\r') ? line.slice(0, -1) : line)
  }
  page.total += 1
  return true
}

/** The first `maxBytes` of `line`, without an incomplete character at the end. */
const firstBytes = (line: string, maxBytes: number) =>
  Buffer.from(line)
    .toString('utf8', 0, maxBytes)
    .replace(/\uFFFD$/, '')

/** Yields the decoded chunks of the file. Throws `invalid_request` for a binary file, and beyond `SCAN_MAX_BYTES`. */
async function* decodedChunks(handle: FileHandle, path: string, signal: AbortSignal): AsyncGenerator<string> {
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

/** An empty chunk is the end of the file; an incomplete character there means that the file is binary. */
function decodeChunk(decoder: TextDecoder, bytes: Uint8Array, path: string): string {
  try {
    return decoder.decode(bytes, { stream: bytes.length > 0 })
  } catch (cause) {
    throw cause instanceof TypeError ? binaryFile(path) : cause
  }
}
