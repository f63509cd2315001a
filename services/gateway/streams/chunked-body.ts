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
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    if (bytes.length <= MAX_COPIED_BYTES) return res.write(chunkOf(bytes))
    res.cork()
    res.write(sizeLine(bytes), 'latin1')
    res.write(bytes)
    const isAccepted = res.write(CRLF, 'latin1')
    res.uncork()
    return isAccepted
  }

  end(): void {
    if (this.#isChunked) this.#res.end(LAST_CHUNK, 'latin1')
    else this.#res.end()
  }
}

const sizeLine = (bytes: Uint8Array): string => bytes.length.toString(16) + CRLF

/** Frames a chunk of a body (RFC 9112, section 7.1). */
function chunkOf(bytes: Uint8Array): Buffer {
  const line = sizeLine(bytes)
  const end = line.length + bytes.length
  const chunk = Buffer.allocUnsafe(end + CRLF.length)
  chunk.write(line, 'latin1')
  chunk.set(bytes, line.length)
  chunk.write(CRLF, end, 'latin1')
  return chunk
}
