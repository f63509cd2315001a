import { isUtf8 } from 'node:buffer'

export type ByteCaps = { maxTurnBytes: number; maxEventBytes: number }

const LF = 10

/** Counts the bytes of one streamed answer, and says when they are too many or are not UTF-8 text. */
export class StreamMeter {
  readonly #caps: ByteCaps
  #turn = 0
  #event = 0
  #line = 0
  #cut: Uint8Array = Buffer.alloc(0)

  constructor(caps: ByteCaps) {
    this.#caps = caps
  }

  add(chunk: Uint8Array): 'turn_bytes' | 'event_bytes' | 'not_utf8' | undefined {
    this.#turn += chunk.length
    if (this.#turn > this.#caps.maxTurnBytes) return 'turn_bytes'
    if (!this.#fitsEvents(chunk)) return 'event_bytes'
    return this.#isText(chunk) ? undefined : 'not_utf8'
  }

  /** The same for an answer that is no stream, such as an error's page: all of it counts as one event. */
  addPage(chunk: Uint8Array): 'event_bytes' | undefined {
    this.#event += chunk.length
    return this.#event > this.#caps.maxEventBytes ? 'event_bytes' : undefined
  }

  /** An event ends at an empty line; the carriage return of a CRLF counts as one. */
  #fitsEvents(chunk: Uint8Array): boolean {
    let start = 0
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      const line = this.#line + end - start
      this.#event += line
      if (this.#event > this.#caps.maxEventBytes) return false
      if (line <= 1) this.#event = 0
      this.#line = 0
      start = end + 1
    }
    this.#line += chunk.length - start
    return this.#event + this.#line <= this.#caps.maxEventBytes
  }

  #isText(chunk: Uint8Array): boolean {
    if (this.#cut.length === 0 && isUtf8(chunk)) return true
    const bytes = Buffer.concat([this.#cut, chunk])
    const whole = bytes.length - unfinished(bytes)
    this.#cut = bytes.subarray(whole)
    return isUtf8(bytes.subarray(0, whole))
  }
}

/** How many of the last bytes are the beginning of a character whose rest comes in the next chunk. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < lengthOf(byte) ? back : 0
  }
  return 0
}

const lengthOf = (lead: number) => (lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2)
