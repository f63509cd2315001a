import { expect } from 'chai'
import { FrameRing } from '../../../shared/cluster/journal/frame-buffer.ts'

const KIB = 1024

/** A ring with one frame for each size, all characters `x`. */
function ringOf(...sizes: readonly number[]): FrameRing {
  const ring = new FrameRing()
  for (const size of sizes) ring.push('x'.repeat(size))
  return ring
}

const rangeOf = ({ firstSeq, lastSeq, length }: FrameRing) => ({ firstSeq, lastSeq, length })

/** The frames after `seq` that one read returns: their bytes and the number of the last. */
function read(ring: FrameRing, seq: number): [bytes: number, lastSeq: number] {
  const { content, lastSeq } = ring.readAfter(seq)
  return [content.length, lastSeq]
}

describe('frame ring', () => {
  it('an empty ring has no frame and no bytes', () => {
    const ring = new FrameRing()
    expect(rangeOf(ring)).to.deep.equal({ firstSeq: 1, lastSeq: 0, length: 0 })
    expect([ring.bytes, ring.bytesAfter(0)]).to.deep.equal([0, 0])
  })

  it('frames are numbered from 1, and push returns the size in bytes', () => {
    const ring = new FrameRing()
    expect([ring.push('a'), ring.push('é€😀')]).to.deep.equal([1, 2 + 3 + 4])
    expect(rangeOf(ring)).to.deep.equal({ firstSeq: 1, lastSeq: 2, length: 2 })
    expect(String(ring.readAfter(0).content)).to.equal('aé€😀')
    expect(String(ring.readAfter(1).content)).to.equal('é€😀')
    expect(ring.readAfter(1).lastSeq).to.equal(2)
  })

  it('buffers double from 2 KiB to 32 KiB', () => {
    const ring = new FrameRing()
    const sizes: number[] = []
    for (let i = 0; i < 300; i++) {
      ring.push('x'.repeat(KIB))
      if (ring.bytes !== sizes.at(-1)) sizes.push(ring.bytes)
    }
    const growth = sizes.map((bytes, i) => (bytes - (sizes[i - 1] ?? 0)) / KIB)
    expect(growth).to.deep.equal([2, 4, 8, 16, ...Array(9).fill(32)])
  })

  it('a frame that fills the buffer exactly goes into it; one byte more takes a new buffer', () => {
    const exact = ringOf(KIB, KIB)
    expect([exact.bytes, read(exact, 0)]).to.deep.equal([2 * KIB, [2 * KIB, 2]])
    const over = ringOf(KIB, KIB + 1)
    expect([over.bytes, read(over, 0), read(over, 1)]).to.deep.equal([6 * KIB, [KIB, 1], [KIB + 1, 2]])
  })

  it('whether a frame fits is decided by its bytes, not by its characters', () => {
    const ring = ringOf(KIB)
    ring.push('é'.repeat(KIB / 2 + 1))
    expect(ring.bytes).to.equal(6 * KIB)
    const fitting = ringOf(KIB)
    fitting.push('é'.repeat(KIB / 2))
    expect(fitting.bytes).to.equal(2 * KIB)
  })

  it('a frame larger than a buffer gets a buffer of its own size', () => {
    const first = ringOf(5 * KIB)
    expect([first.bytes, read(first, 0)]).to.deep.equal([5 * KIB, [5 * KIB, 1]])
    const later = ringOf(1, 100 * KIB)
    expect(later.bytes).to.equal(102 * KIB)
  })

  it('a read ends with its buffer; the next read goes on there', () => {
    const ring = ringOf(KIB, KIB, KIB, 10)
    expect([read(ring, 0), read(ring, 1)]).to.deep.equal([
      [2 * KIB, 2],
      [KIB, 2],
    ])
    expect([read(ring, 2), read(ring, 3)]).to.deep.equal([
      [KIB + 10, 4],
      [10, 4],
    ])
  })

  it('bytesAfter counts the frames after a number, over all buffers', () => {
    const ring = ringOf(KIB, KIB, 100, 10)
    expect([0, 1, 2, 3, 4, 9].map((seq) => ring.bytesAfter(seq))).to.deep.equal([
      2 * KIB + 110,
      KIB + 110,
      110,
      10,
      0,
      0,
    ])
  })

  it('a buffer is freed when its last frame is dropped', () => {
    const ring = ringOf(KIB, KIB, 100)
    ring.shift()
    expect([rangeOf(ring), ring.bytes]).to.deep.equal([{ firstSeq: 2, lastSeq: 3, length: 2 }, 6 * KIB])
    expect(read(ring, 1)).to.deep.equal([KIB, 2])
    ring.shift()
    expect([rangeOf(ring), ring.bytes]).to.deep.equal([{ firstSeq: 3, lastSeq: 3, length: 1 }, 4 * KIB])
    expect(read(ring, 2)).to.deep.equal([100, 3])
    expect(ring.bytesAfter(0)).to.equal(100)
    ring.shift()
    expect([rangeOf(ring), ring.bytes]).to.deep.equal([{ firstSeq: 4, lastSeq: 3, length: 0 }, 0])
  })

  it('numbers go on after clear, which frees all buffers', () => {
    const ring = ringOf(KIB, KIB, KIB)
    ring.clear()
    expect([rangeOf(ring), ring.bytes]).to.deep.equal([{ firstSeq: 4, lastSeq: 3, length: 0 }, 0])
    ring.push('ab')
    expect([rangeOf(ring), ring.bytes]).to.deep.equal([{ firstSeq: 4, lastSeq: 4, length: 1 }, 2 * KIB])
    expect(read(ring, 3)).to.deep.equal([2, 4])
  })

  it('reading before the first buffer throws', () => {
    const ring = ringOf(2 * KIB, 1)
    ring.shift()
    expect(() => ring.readAfter(0)).to.throw(RangeError, 'no frame after 0')
    expect(() => new FrameRing().readAfter(0)).to.throw(RangeError)
  })
})
