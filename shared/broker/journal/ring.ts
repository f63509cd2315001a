const FIRST_SLAB_BYTES = 2 * 1024
const MAX_SLAB_BYTES = 64 * 1024
/** One UTF-16 unit becomes at most three bytes of UTF-8. */
const MAX_BYTES_PER_UNIT = 3

/** Consecutive frames in one buffer. Bytes are written once and never overwritten, so a view of them stays valid. */
type Slab = {
  bytes: Buffer
  firstSeq: number
  /** Offset of the end of each frame. */
  ends: number[]
}

/**
 * Keeps the latest frames of a run as UTF-8, numbered consecutively. The bytes are outside the JavaScript heap, their number is
 * exact, and reading does not copy them. The ring has no limit of its own: the caller decides when to drop the oldest frame.
 */
export class FrameRing {
  readonly #slabs: Slab[] = []
  #firstSeq = 1
  #lastSeq = 0
  #bytes = 0

  /** Number of the oldest frame kept, or `lastSeq + 1` when the ring is empty. */
  get firstSeq(): number {
    return this.#firstSeq
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  get length(): number {
    return this.#lastSeq - this.#firstSeq + 1
  }

  /** Size of all buffers, including the part that is not yet written. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds the next frame and returns its size in bytes. */
  push(frame: string): number {
    const slab = this.#slabFor(frame)
    const start = slab.ends.at(-1) ?? 0
    const size = slab.bytes.write(frame, start, 'utf8')
    slab.ends.push(start + size)
    this.#lastSeq++
    return size
  }

  /** Drops the oldest frame. A buffer is freed when all its frames are dropped. */
  shift(): void {
    this.#firstSeq++
    const [oldest] = this.#slabs
    if (oldest && oldest.firstSeq + oldest.ends.length <= this.#firstSeq)
      this.#bytes -= this.#slabs.shift()?.bytes.length ?? 0
  }

  clear(): void {
    this.#firstSeq = this.#lastSeq + 1
    this.#slabs.length = 0
    this.#bytes = 0
  }

  /** The frames after number `seq` up to the end of their buffer. Frame `seq + 1` must be in the ring. */
  readAfter(seq: number): { text: Buffer; lastSeq: number } {
    const slab = this.#slabs.findLast(({ firstSeq }) => firstSeq <= seq + 1)
    if (!slab) throw new RangeError(`no frame after ${seq}`)
    return {
      text: slab.bytes.subarray(startOf(slab, seq + 1), slab.ends.at(-1)),
      lastSeq: slab.firstSeq + slab.ends.length - 1,
    }
  }

  bytesAfter(seq: number): number {
    const behind = this.#slabs.filter(({ firstSeq, ends }) => firstSeq + ends.length > seq + 1)
    return behind.reduce((bytes, slab) => bytes + (slab.ends.at(-1) ?? 0) - startOf(slab, seq + 1), 0)
  }

  #slabFor(frame: string): Slab {
    const last = this.#slabs.at(-1)
    const free = last ? last.bytes.length - (last.ends.at(-1) ?? 0) : 0
    if (last && frame.length * MAX_BYTES_PER_UNIT <= free) return last // Measuring the frame is only needed near the end of a buffer.
    const size = Buffer.byteLength(frame)
    if (last && size <= free) return last
    const usual = last ? Math.min(last.bytes.length * 2, MAX_SLAB_BYTES) : FIRST_SLAB_BYTES
    const slab = { bytes: Buffer.allocUnsafeSlow(Math.max(size, usual)), firstSeq: this.#lastSeq + 1, ends: [] }
    this.#slabs.push(slab)
    this.#bytes += slab.bytes.length
    return slab
  }
}

const startOf = ({ firstSeq, ends }: Slab, seq: number): number =>
  seq > firstSeq ? (ends[seq - firstSeq - 1] ?? 0) : 0
