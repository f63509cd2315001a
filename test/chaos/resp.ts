const [LF, CR, STRING, ARRAY, MINUS, ZERO, NINE, INTEGER, PUSH, ATTRIBUTE] = [10, 13, 36, 42, 45, 48, 57, 58, 62, 124]
const MAX_DEPTH = 64

/** What a type's first line says: all there is, the length of a string, a count of elements, a count of pairs. */
const [LINE, SIZED, LIST, PAIRS] = [1, 2, 3, 4]
const SHAPES = new Uint8Array(256)
for (const type of Buffer.from('+-:_#,(')) SHAPES[type] = LINE
for (const type of Buffer.from('$!=')) SHAPES[type] = SIZED
for (const type of Buffer.from('*~>')) SHAPES[type] = LIST
for (const type of Buffer.from('%|')) SHAPES[type] = PAIRS

/** Bytes that are no RESP 2 or 3, or one of the streamed types that no Redis sends. */
export class RespError extends Error {}

/**
 * Finds where replies end in the bytes that a Redis sends, however they are cut, by reading the headers alone. An attribute
 * belongs to the reply behind it. Throws `RespError`, and is of no use from then on.
 */
export class FrameScanner {
  /** The first byte of the frame read last, whole or not. */
  type = 0
  /** Elements to come on this level, and on the levels around it; 0 between two frames. */
  #left = 0
  readonly #outer: number[] = []
  /** Bytes of a string to come, its line end included. */
  #skip = 0
  /** The type of the header being read, or 0 between two; the number that it holds so far. */
  #header = 0
  #number = 0
  #isNull = false

  /** The offset behind the first frame that ends in `chunk` from `from` on; -1 when it goes on in the next chunk. */
  endOf(chunk: Buffer, from: number): number {
    let at = from
    while (at < chunk.length) {
      if (this.#left === 0) {
        this.type = chunk[at] ?? 0
        this.#left = 1
      }
      if (this.#skip === 0) {
        at = this.#readHeader(chunk, at)
        if (at < 0) return -1
        if (!this.#isWhole()) continue
      } else {
        const step = Math.min(this.#skip, chunk.length - at)
        this.#skip -= step
        at += step
        if (this.#skip > 0) return -1
      }
      if (this.#isLast()) return at
    }
    return -1
  }

  /** The offset behind the header's line, or -1. */
  #readHeader(chunk: Buffer, from: number): number {
    let at = from
    if (this.#header === 0) {
      this.#header = chunk[at++] ?? 0
      this.#number = 0
      this.#isNull = false
    }
    const shape = SHAPES[this.#header]
    if (shape === 0) throw new RespError(`a reply cannot begin with byte ${this.#header}`)
    if (shape === LINE) return chunk.indexOf(LF, at) + 1 || -1
    for (; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (byte >= ZERO && byte <= NINE) this.#number = this.#number * 10 + byte - ZERO
      else if (byte === LF) return at + 1
      else if (byte === MINUS) this.#isNull = true
      else if (byte !== CR) throw new RespError(`a length cannot contain byte ${byte}`)
    }
    return -1
  }

  /** Takes the header in. Was it a whole element? */
  #isWhole(): boolean {
    const type = this.#header
    const shape = SHAPES[type]
    this.#header = 0
    if (shape === LINE || this.#isNull) return true
    if (shape === SIZED) {
      this.#skip = this.#number + 2
      return false
    }
    const count = shape === PAIRS ? this.#number * 2 : this.#number
    if (type === ATTRIBUTE) this.#left += count
    else if (count === 0) return true
    else this.#descend(count)
    return false
  }

  #descend(count: number): void {
    if (this.#outer.push(this.#left) > MAX_DEPTH) throw new RespError(`replies nest deeper than ${MAX_DEPTH}`)
    this.#left = count
  }

  /** Counts the element just read. Was it the frame's last? */
  #isLast(): boolean {
    this.#left--
    while (this.#left === 0) {
      const around = this.#outer.pop()
      if (around === undefined) return true
      this.#left = around - 1
    }
    return false
  }
}

/** Can a frame of this first byte carry a pub/sub message? RESP 3 pushes them, RESP 2 sends arrays. */
export const mayBePubSub = (type: number): boolean => type === PUSH || type === ARRAY

/** Is it a push, and so never an answer that only looks like a message? */
export const isPush = (type: number): boolean => type === PUSH

/** A pattern's message is known by its channel, as any other. */
export type PubSubMessage = { kind: 'message' | 'pmessage' | 'smessage'; channel: string; payload: Buffer }

const SUBSCRIBED = new Set(['subscribe', 'psubscribe', 'ssubscribe'])

/** What a whole push or array says, if it is about pub/sub. The payload is a view of the frame. */
export function readPubSub(frame: Buffer): PubSubMessage | 'subscribed' | undefined {
  const first = stringAt(frame, frame.indexOf(LF) + 1)
  const second = first && stringAt(frame, first.end)
  if (first === undefined || second === undefined) return undefined
  const kind = first.text.toString('latin1')
  if (SUBSCRIBED.has(kind)) return frame[second.end] === INTEGER ? 'subscribed' : undefined
  if (kind !== 'message' && kind !== 'pmessage' && kind !== 'smessage') return undefined
  const channel = kind === 'pmessage' ? stringAt(frame, second.end) : second
  const payload = channel && stringAt(frame, channel.end)
  return channel && payload && { kind, channel: channel.text.toString(), payload: payload.text }
}

/** The string at an offset, and the offset behind it; `undefined` when something else is there. */
function stringAt(frame: Buffer, at: number): { text: Buffer; end: number } | undefined {
  if (frame[at] !== STRING) return undefined
  let length = 0
  let from = at + 1
  for (; frame[from] !== CR; from++) {
    const digit = (frame[from] ?? 0) - ZERO
    if (digit < 0 || digit > 9) return undefined
    length = length * 10 + digit
  }
  const end = from + 2 + length
  return { text: frame.subarray(from + 2, end), end: end + 2 }
}
