const FIRST_SLAB_BYTES = 2 * 1024
const MAX_SLAB_BYTES = 64 * 1024
/** Of UTF-8, for a UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3

/** Frames that lie one behind the other in one buffer. Nothing in it is ever written twice, so views of it stay true. */
type Slab = { bytes: Buffer; firstSeq: number /** Where each frame ends. */; ends: number[] }

/**
 * The last so many frames of a run as UTF-8, numbered without a hole: outside the heap, exact in size, and read without a copy.
 * Knows no limits: whoever pushes decides what to drop.
 */
export class FrameRing {
  readonly #slabs: Slab[] = []
  #firstSeq = 1
  #lastSeq = 0
  #bytes = 0

  /** Number of the oldest frame that is still here (one more than `lastSeq` when none is). */
  get firstSeq(): number {
    return this.#firstSeq
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  get length(): number {
    return this.#lastSeq - this.#firstSeq + 1
  }

  /** What the frames occupy. */
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

  /** Lets the oldest frame go. Its bytes go with the last frame beside it. */
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

  /** The frames after number `seq` that lie together. The caller has seen that there are any. */
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
    if (last && frame.length * MAX_BYTES_PER_UNIT <= free) return last // So nearly all frames are measured by writing them.
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
