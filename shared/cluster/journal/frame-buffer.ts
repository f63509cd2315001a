import { LargeFrame } from './large-frame.ts'

const FIRST_SLAB_BYTES = 2 * 1024
const MAX_SLAB_BYTES = 32 * 1024
/** One UTF-16 unit becomes at most three bytes of UTF-8. */
const MAX_BYTES_PER_UNIT = 3

/** Consecutive frames in one piece of memory, or one large frame. Bytes are written once and never overwritten, so a view of them stays valid. */
type Slab<Content = Buffer | LargeFrame> = {
  content: Content
  firstSeq: number
  /** Offset of the end of each frame. */
  ends: number[]
}

/** Frames that follow each other up to number `lastSeq`, and their size as the buffer counts it. */
export type KeptFrames = { content: Buffer | LargeFrame; lastSeq: number; size: number }

/**
 * Keeps the latest frames of a run as UTF-8, numbered consecutively. The bytes are outside the JavaScript heap, their number is
 * exact, and reading does not copy them. A large frame is kept as it is, and counts as its number of characters. The buffer has no limit
 * of its own: the caller decides when to drop the oldest frame.
 */
export class FrameBuffer {
  readonly #slabs: Slab[] = []
  #firstSeq = 1
  #lastSeq = 0
  #bytes = 0

  /** Number of the oldest frame kept, or `lastSeq + 1` when there is none. */
  get firstSeq(): number {
    return this.#firstSeq
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  get length(): number {
    return this.#lastSeq - this.#firstSeq + 1
  }

  /** Size of all slabs, including the part that is not yet written. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds the next frame and returns its size in bytes. */
  push(frame: string | LargeFrame): number {
    if (typeof frame !== 'string') return this.#pushLarge(frame)
    const slab = this.#slabFor(frame)
    const start = slab.ends.at(-1) ?? 0
    const size = slab.content.write(frame, start, 'utf8')
    slab.ends.push(start + size)
    this.#lastSeq++
    return size
  }

  /** Drops the oldest frame. A slab is freed when all its frames are dropped. */
  shift(): void {
    this.#firstSeq++
    const [oldest] = this.#slabs
    if (oldest && oldest.firstSeq + oldest.ends.length <= this.#firstSeq)
      this.#bytes -= this.#slabs.shift()?.content.length ?? 0
  }

  clear(): void {
    this.#firstSeq = this.#lastSeq + 1
    this.#slabs.length = 0
    this.#bytes = 0
  }

  /** The frames after number `seq` up to the end of their slab. Frame `seq + 1` must be kept. */
  readAfter(seq: number): KeptFrames {
    const slab = this.#slabs.findLast(({ firstSeq }) => firstSeq <= seq + 1)
    if (!slab) throw new RangeError(`no frame after ${seq}`)
    const { content, firstSeq, ends } = slab
    const [start, end] = [startOf(slab, seq + 1), ends.at(-1) ?? 0]
    return {
      content: content instanceof LargeFrame ? content : content.subarray(start, end),
      lastSeq: firstSeq + ends.length - 1,
      size: end - start,
    }
  }

  bytesAfter(seq: number): number {
    const behind = this.#slabs.filter(({ firstSeq, ends }) => firstSeq + ends.length > seq + 1)
    return behind.reduce((bytes, slab) => bytes + (slab.ends.at(-1) ?? 0) - startOf(slab, seq + 1), 0)
  }

  #pushLarge(frame: LargeFrame): number {
    this.#slabs.push({ content: frame, firstSeq: ++this.#lastSeq, ends: [frame.length] })
    this.#bytes += frame.length
    return frame.length
  }

  #slabFor(frame: string): Slab<Buffer> {
    const last = bufferSlab(this.#slabs.at(-1))
    const free = last ? last.content.length - (last.ends.at(-1) ?? 0) : 0
    if (last && frame.length * MAX_BYTES_PER_UNIT <= free) return last // Measuring the frame is only needed near the end of a slab.
    const size = Buffer.byteLength(frame)
    if (last && size <= free) return last
    const usual = last ? Math.min(last.content.length * 2, MAX_SLAB_BYTES) : FIRST_SLAB_BYTES
    const slab = { content: Buffer.allocUnsafeSlow(Math.max(size, usual)), firstSeq: this.#lastSeq + 1, ends: [] }
    this.#slabs.push(slab)
    this.#bytes += slab.content.length
    return slab
  }
}

const bufferSlab = (slab: Slab | undefined): Slab<Buffer> | undefined =>
  slab?.content instanceof Buffer ? (slab as Slab<Buffer>) : undefined

const startOf = ({ firstSeq, ends }: Slab, seq: number): number =>
  seq > firstSeq ? (ends[seq - firstSeq - 1] ?? 0) : 0
