import type { ServerResponse } from 'node:http'

const CRLF = '\r\n'
const LAST_CHUNK = '0\r\n\r\n'
/** Longer pieces are not copied. */
const MAX_COPIED_BYTES = 16 * 1024

/**
 * Writes the body of a streamed response whose head was sent. Node writes each chunk of a body in four pieces; a chunk in one piece
 * costs half as much CPU, so the chunks are framed here.
 */
export class ChunkedBody {
  readonly #res: ServerResponse
  readonly #isChunked: boolean

  constructor(res: ServerResponse) {
    this.#res = res
    this.#isChunked = res.chunkedEncoding // False for a client of HTTP/1.0.
    res.chunkedEncoding = false
  }

  /** Returns false when the client is behind; `drain` follows. */
  write(text: string | Uint8Array): boolean {
    const res = this.#res
    if (text.length === 0) return !res.writableNeedDrain // An empty chunk would end the body.
    if (!this.#isChunked) return res.write(text)
    const length = typeof text === 'string' ? Buffer.byteLength(text) : text.length
    if (length <= MAX_COPIED_BYTES) return res.write(chunkOf(text, length))
    res.cork()
    res.write(sizeLine(length), 'latin1')
    res.write(text)
    const isAccepted = res.write(CRLF, 'latin1')
    res.uncork()
    return isAccepted
  }

  end(): void {
    if (this.#isChunked) this.#res.end(LAST_CHUNK, 'latin1')
    else this.#res.end()
  }
}

const sizeLine = (bytes: number): string => bytes.toString(16) + CRLF

/** Frames a chunk of a body (RFC 9112, section 7.1). */
function chunkOf(text: string | Uint8Array, bytes: number): Buffer {
  const line = sizeLine(bytes)
  const end = line.length + bytes
  const chunk = Buffer.allocUnsafe(end + CRLF.length)
  chunk.write(line, 'latin1')
  if (typeof text === 'string') chunk.write(text, line.length)
  else chunk.set(text, line.length)
  chunk.write(CRLF, end, 'latin1')
  return chunk
}
