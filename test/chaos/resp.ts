const [LF, CR, STRING, ARRAY, MINUS, ZERO, NINE, INTEGER, PUSH, ATTRIBUTE] = [10, 13, 36, 42, 45, 48, 57, 58, 62, 124]
const MAX_DEPTH = 64

/** The content of a type's first line: the whole value, a string's length, a number of elements, a number of pairs. */
const [LINE, SIZED, LIST, PAIRS] = [1, 2, 3, 4]
const SHAPES = new Uint8Array(256)
for (const type of Buffer.from('+-:_#,(')) SHAPES[type] = LINE
for (const type of Buffer.from('$!=')) SHAPES[type] = SIZED
for (const type of Buffer.from('*~>')) SHAPES[type] = LIST
for (const type of Buffer.from('%|')) SHAPES[type] = PAIRS

/** The bytes are not RESP 2 or 3, or use one of the streamed types that Redis does not send. */
export class RespError extends Error {}

/**
 * Finds the ends of replies in the bytes from Redis, in chunks of any size, by parsing only the headers. An attribute
 * belongs to the reply that follows it. After a `RespError` the scanner cannot be used any more.
 */
export class FrameScanner {
  /** The first byte of the current frame. */
  type = 0
  /** Elements left on this level; 0 between two frames. `#outer` holds those of the enclosing levels. */
  #left = 0
  readonly #outer: number[] = []
  /** Bytes left of a string, its line end included. */
  #skip = 0
  /** The type of the current header, or 0 between two headers. `#number` is the number read so far. */
  #header = 0
  #number = 0
  #isNull = false

  /** The offset after the first frame that ends in `chunk` from `from` on; -1 when it continues in the next chunk. */
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

  /** The offset after the header's line, or -1. */
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

  /** Processes the header. Returns whether it was a complete element. */
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

  /** Counts a completed element. Returns whether it was the last one of the frame. */
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

/** Whether a frame with this first byte can carry a pub/sub message: a push in RESP 3, an array in RESP 2. */
export const mayBePubSub = (type: number): boolean => type === PUSH || type === ARRAY

/** Whether it is a push. A push is never the reply to a command. */
export const isPush = (type: number): boolean => type === PUSH

/** A pub/sub message. For a pattern subscription, `channel` is the channel, not the pattern. */
export type PubSubMessage = { kind: 'message' | 'pmessage' | 'smessage'; channel: string; payload: Buffer }

const SUBSCRIBED = new Set(['subscribe', 'psubscribe', 'ssubscribe'])

/** Parses a complete push or array; `undefined` when it is not about pub/sub. The payload is a view of the frame. */
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

/** The string at an offset and the offset after it; `undefined` when there is something else. */
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
