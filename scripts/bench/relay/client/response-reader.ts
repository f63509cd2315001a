const [CR, LF] = [13, 10]
const HEAD_END = '\r\n\r\n'
const MAX_HEAD_CHARS = 8_192

export type BodySink = {
  /** Receives a piece of the body. The buffer is reused after the call. */
  body(bytes: Buffer, from: number, to: number): void
  /** The response is complete. `isClosing`: the server accepts no other request on this connection. */
  ended(isClosing: boolean): void
}

/**
 * Reads successive chunked HTTP responses on one connection without copying, since node:http's client costs more per chunk
 * than the measured servers. Throws for any other response, with its text.
 */
export class ResponseReader {
  readonly #sink: BodySink
  #head = ''
  /** head -> size -> body (#left bytes) -> size ... -> trailer -> head */
  #state: 'head' | 'size' | 'body' | 'trailer' = 'head'
  #size = 0
  #hasDigits = false
  #left = 0
  #isClosing = false

  constructor(sink: BodySink) {
    this.#sink = sink
  }

  read(bytes: Buffer, length: number): void {
    let at = 0
    while (at < length) {
      if (this.#state === 'head') at = this.#readHead(bytes, at, length)
      else if (this.#state === 'body') at = this.#readBody(bytes, at, length)
      else at = this.#readLine(bytes, at, length)
    }
  }

  #readHead(bytes: Buffer, at: number, length: number): number {
    const known = this.#head.length
    this.#head += bytes.toString('latin1', at, Math.min(length, at + MAX_HEAD_CHARS - known))
    const end = this.#head.indexOf(HEAD_END)
    if (end < 0 && this.#head.length < MAX_HEAD_CHARS) return length
    const head = this.#head.slice(0, end + HEAD_END.length)
    if (!head.startsWith('HTTP/1.1 200') || !/transfer-encoding: chunked/i.test(head)) throw new Error(this.#head)
    this.#isClosing = /connection: close/i.test(head)
    this.#head = ''
    this.#state = 'size'
    return at + head.length - known
  }

  #readBody(bytes: Buffer, at: number, length: number): number {
    const end = Math.min(length, at + this.#left)
    this.#left -= end - at
    if (this.#left === 0) this.#state = 'size'
    this.#sink.body(bytes, at, end)
    return end
  }

  /** Reads a chunk's size, after the line feed of the chunk before it, or the empty line after the last chunk. */
  #readLine(bytes: Buffer, from: number, length: number): number {
    for (let at = from; at < length; at++) {
      const byte = bytes[at] ?? 0
      if (byte === CR) continue
      if (byte === LF) {
        this.#lineEnded()
        if (this.#state === 'body' || this.#state === 'head') return at + 1
      } else {
        this.#size = this.#size * 16 + (byte > 57 ? (byte | 32) - 87 : byte - 48)
        this.#hasDigits = true
      }
    }
    return length
  }

  #lineEnded(): void {
    if (this.#state === 'trailer') {
      this.#state = 'head'
      return this.#sink.ended(this.#isClosing)
    }
    if (!this.#hasDigits) return
    this.#left = this.#size
    this.#state = this.#size > 0 ? 'body' : 'trailer'
    this.#size = 0
    this.#hasDigits = false
  }
}
