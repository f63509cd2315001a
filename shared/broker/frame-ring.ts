const READ_BYTES = 64 * 1024
const COMPACT_AT = 1024

/** The last so many frames of a run, numbered without a hole. Knows no limits: whoever pushes decides what to drop. */
export class FrameRing {
  #frames: string[] = []
  #head = 0
  #firstSeq = 1
  #bytes = 0

  /** Number of the oldest frame that is still here (one more than `lastSeq` when none is). */
  get firstSeq(): number {
    return this.#firstSeq
  }

  get lastSeq(): number {
    return this.#firstSeq + this.length - 1
  }

  get length(): number {
    return this.#frames.length - this.#head
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Adds the next frame and returns its size in bytes. */
  push(frame: string): number {
    const size = Buffer.byteLength(frame)
    this.#frames.push(frame)
    this.#bytes += size
    return size
  }

  /** Lets the oldest frame go and returns its size in bytes. */
  shift(): number {
    const size = Buffer.byteLength(this.#frames[this.#head] ?? '')
    this.#frames[this.#head++] = ''
    this.#firstSeq++
    this.#bytes -= size
    if (this.#head >= COMPACT_AT) {
      this.#frames = this.#frames.slice(this.#head)
      this.#head = 0
    }
    return size
  }

  clear(): void {
    this.#firstSeq = this.lastSeq + 1
    this.#frames = []
    this.#head = 0
    this.#bytes = 0
  }

  /** The frames after number `seq`, merged up to about 64 KiB. The caller has seen that there are any. */
  readAfter(seq: number): { text: string; lastSeq: number } {
    const from = this.#indexAfter(seq)
    let index = from
    let text = ''
    while (index < this.#frames.length && text.length < READ_BYTES) text += this.#frames[index++]
    return { text, lastSeq: seq + index - from }
  }

  bytesAfter(seq: number): number {
    return this.#frames.slice(this.#indexAfter(seq)).reduce((bytes, frame) => bytes + Buffer.byteLength(frame), 0)
  }

  #indexAfter(seq: number): number {
    return this.#head + Math.max(0, seq + 1 - this.#firstSeq)
  }
}
