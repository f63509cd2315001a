import { isUtf8 } from 'node:buffer'

export type ByteLimits = {
  maxTurnBytes: number
  maxEventBytes: number
  /** With `line` each line is an event. Default: an event ends at an empty line. */
  eventEnd?: 'line'
}

const NO_BYTES: Uint8Array = Buffer.alloc(0)
const LF = 10
const CR = 13

/** Counts the bytes of one streamed response and checks that they are UTF-8 text. */
export class StreamMeter {
  readonly #limits: ByteLimits
  #turnBytes = 0
  /** Bytes of the current event, without its unfinished last line. */
  #eventBytes = 0
  #textLineBytes = 0
  /** Whether the last chunk ended with CR: a following LF belongs to it. */
  #endsInCr = false
  /** The beginning of a character whose other bytes are in the next chunk. */
  #partialCharacter = NO_BYTES

  constructor(limits: ByteLimits) {
    this.#limits = limits
  }

  /** Adds a chunk; returns the limit it exceeds, if any. */
  add(chunk: Uint8Array): 'turn_bytes' | 'event_bytes' | 'not_utf8' | undefined {
    this.#turnBytes += chunk.length
    if (this.#turnBytes > this.#limits.maxTurnBytes) return 'turn_bytes'
    if (!this.#fitsEvents(chunk)) return 'event_bytes'
    return this.#isText(chunk) ? undefined : 'not_utf8'
  }

  /** Adds a chunk of a body that is not an event stream, such as an error body: the whole body counts as one event. */
  addErrorBody(chunk: Uint8Array): 'event_bytes' | undefined {
    this.#eventBytes += chunk.length
    return this.#eventBytes > this.#limits.maxEventBytes ? 'event_bytes' : undefined
  }

  /** An event ends at an empty text line. The carriage return of a CRLF counts as one byte of its line. */
  #fitsEvents(chunk: Uint8Array): boolean {
    let start = this.#endsInCr && chunk[0] === LF ? 1 : 0
    this.#endsInCr = chunk[chunk.length - 1] === CR
    let cr = chunk.indexOf(CR)
    for (;;) {
      if (cr >= 0 && cr < start) cr = chunk.indexOf(CR, start)
      const end = firstLineEnd(cr, chunk.indexOf(LF, start))
      if (end < 0) break
      const lineBytes = this.#textLineBytes + end - start
      this.#eventBytes += lineBytes
      if (this.#eventBytes > this.#limits.maxEventBytes) return false
      if (lineBytes <= 1 || this.#limits.eventEnd === 'line') this.#eventBytes = 0
      this.#textLineBytes = 0
      start = end + 1
    }
    this.#textLineBytes += chunk.length - start
    return this.#eventBytes + this.#textLineBytes <= this.#limits.maxEventBytes
  }

  #isText(chunk: Uint8Array): boolean {
    if (this.#partialCharacter.length === 0 && isUtf8(chunk)) return true
    const bytes = Buffer.concat([this.#partialCharacter, chunk])
    const end = bytes.length - trailingPartialBytes(bytes)
    this.#partialCharacter = bytes.subarray(end)
    return isUtf8(bytes.subarray(0, end))
  }
}

/** Where the first line ends: at LF, CRLF, or CR alone. -1: nowhere. Takes the places of the first CR and LF. */
function firstLineEnd(cr: number, lf: number): number {
  const isCrFirst = cr >= 0 && (lf < 0 || cr < lf)
  return !isCrFirst || lf === cr + 1 ? lf : cr
}

/** Counts the bytes at the end that begin a character and do not complete it: 0 to 3. */
function trailingPartialBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < characterLength(byte) ? back : 0
  }
  return 0
}

const characterLength = (leadByte: number) => (leadByte >= 0xf0 ? 4 : leadByte >= 0xe0 ? 3 : 2)
