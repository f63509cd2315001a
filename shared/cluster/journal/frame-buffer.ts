import { LargeFrame } from './large-frame.ts'

const FIRST_SLAB_BYTES = 2 * 1024
const MAX_SLAB_BYTES = 32 * 1024
/** A read passes at most this many numbers that were left out. */
const MAX_SKIPPED = 16_384
const NOTHING = Buffer.alloc(0)
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
 * Keeps the latest frames of a run as UTF-8, numbered consecutively, except where numbers were left out (`skipTo`). The bytes are outside the JavaScript heap, their number is
 * exact, and reading does not copy them. A large frame is kept as it is, and counts as its number of characters. The buffer has no limit
 * of its own: the caller decides when to drop the oldest frame.
 */
export class FrameBuffer {
  readonly #slabs: Slab[] = []
  #firstSeq = 1
  #lastSeq = 0
  #newestSeq = 0
  #length = 0
  #bytes = 0

  /** From this number on all frames are kept; `lastSeq + 1` when there is none. */
  get firstSeq(): number {
    return this.#firstSeq
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  /** Number of the newest frame that was added. */
  get newestSeq(): number {
    return this.#newestSeq
  }

  get length(): number {
    return this.#length
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
    this.#newestSeq = ++this.#lastSeq
    this.#length++
    return size
  }

  /** Makes the next frame's number higher than `seq`: there are no frames with the numbers in between. */
  skipTo(seq: number): void {
    if (seq <= this.#lastSeq) return
    const last = bufferSlab(this.#slabs.at(-1))
    if (last) this.#trim(last)
    this.#lastSeq = seq
  }

  /** Drops the oldest frame. A slab is freed when all its frames are dropped. */
  shift(): void {
    const [oldest] = this.#slabs
    if (!oldest) return
    this.#firstSeq = Math.max(this.#firstSeq, oldest.firstSeq) + 1
    this.#length--
    if (lastOf(oldest) < this.#firstSeq) this.#bytes -= this.#slabs.shift()?.content.length ?? 0
  }

  /** Sets the number of the first frame. Call it before the first frame is added. */
  startAt(seq: number): void {
    this.#firstSeq = seq
    this.#lastSeq = seq - 1
  }

  clear(): void {
    this.#firstSeq = this.#lastSeq + 1
    this.#length = 0
    this.#slabs.length = 0
    this.#bytes = 0
  }

  /** The frames after number `seq` up to the end of their slab. Frame `seq + 1` must be kept, or was left out. */
  readAfter(seq: number): KeptFrames {
    if (seq + 1 < this.#firstSeq || seq >= this.#lastSeq) throw new RangeError(`no frame after ${seq}`)
    const slab = this.#slabAfter(seq)
    const leftOut = (slab?.firstSeq ?? this.#lastSeq + 1) - (seq + 1)
    if (!slab || leftOut > MAX_SKIPPED)
      return { content: NOTHING, lastSeq: seq + Math.min(leftOut, MAX_SKIPPED), size: 0 }
    const { content, ends } = slab
    const [start, end] = [startOf(slab, seq + 1), ends.at(-1) ?? 0]
    return {
      content: content instanceof LargeFrame ? content : content.subarray(start, end),
      lastSeq: lastOf(slab),
      size: end - start,
    }
  }

  /** The number of the first frame after number `seq`; `undefined` when there is none. */
  nextAfter(seq: number): number | undefined {
    const slab = this.#slabAfter(seq)
    return slab && Math.max(slab.firstSeq, seq + 1)
  }

  /** The first slab with a frame after number `seq`: mostly the last one, or the one before. */
  #slabAfter(seq: number): Slab | undefined {
    let found: Slab | undefined
    for (let i = this.#slabs.length - 1; i >= 0; i--) {
      const slab = this.#slabs[i]
      if (!slab || lastOf(slab) <= seq) break
      found = slab
    }
    return found
  }

  bytesAfter(seq: number): number {
    const behind = this.#slabs.filter((slab) => lastOf(slab) > seq)
    return behind.reduce((bytes, slab) => bytes + (slab.ends.at(-1) ?? 0) - startOf(slab, seq + 1), 0)
  }

  #pushLarge(frame: LargeFrame): number {
    this.#newestSeq = ++this.#lastSeq
    this.#slabs.push({ content: frame, firstSeq: this.#newestSeq, ends: [frame.length] })
    this.#length++
    this.#bytes += frame.length
    return frame.length
  }

  #slabFor(frame: string): Slab<Buffer> {
    const newest = this.#slabs.at(-1)
    const last = newest && lastOf(newest) === this.#lastSeq ? bufferSlab(newest) : undefined
    const free = last ? last.content.length - (last.ends.at(-1) ?? 0) : 0
    if (last && frame.length * MAX_BYTES_PER_UNIT <= free) return last // Measuring the frame is only needed near the end of a slab.
    const size = Buffer.byteLength(frame)
    if (last && size <= free) return last
    // After a gap another one mostly follows soon, and ends the slab, so a small slab is enough.
    const isBehindGap = newest !== undefined && lastOf(newest) !== this.#lastSeq
    const first = isBehindGap ? 0 : FIRST_SLAB_BYTES
    const usual = last ? Math.min(last.content.length * 2, MAX_SLAB_BYTES) : first
    const slab = { content: Buffer.allocUnsafeSlow(Math.max(size, usual)), firstSeq: this.#lastSeq + 1, ends: [] }
    this.#slabs.push(slab)
    this.#bytes += slab.content.length
    return slab
  }

  /** Frees the unused part of the last slab. */
  #trim(last: Slab<Buffer>): void {
    const used = last.ends.at(-1) ?? 0
    if (used === last.content.length) return
    const content = Buffer.allocUnsafeSlow(used)
    last.content.copy(content)
    this.#bytes += content.length - last.content.length
    this.#slabs[this.#slabs.length - 1] = { ...last, content }
  }
}

const lastOf = ({ firstSeq, ends }: Slab): number => firstSeq + ends.length - 1

const bufferSlab = (slab: Slab | undefined): Slab<Buffer> | undefined =>
  slab?.content instanceof Buffer ? (slab as Slab<Buffer>) : undefined

const startOf = ({ firstSeq, ends }: Slab, seq: number): number =>
  seq > firstSeq ? (ends[seq - firstSeq - 1] ?? 0) : 0
