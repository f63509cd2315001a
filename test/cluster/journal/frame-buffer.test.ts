import { expect } from 'chai'
import { FrameBuffer } from '../../../shared/cluster/journal/frame-buffer.ts'

const KIB = 1024

/** A buffer with one frame for each size, all characters `x`. */
function bufferOf(...sizes: readonly number[]): FrameBuffer {
  const frames = new FrameBuffer()
  for (const size of sizes) frames.push('x'.repeat(size))
  return frames
}

const rangeOf = ({ firstSeq, lastSeq, length }: FrameBuffer) => ({ firstSeq, lastSeq, length })

/** The frames after `seq` that one read returns: their bytes and the number of the last. */
function read(frames: FrameBuffer, seq: number): [bytes: number, lastSeq: number] {
  const { content, lastSeq } = frames.readAfter(seq)
  return [content.length, lastSeq]
}

describe('frame buffer', () => {
  it('an empty buffer has no frame and no bytes', () => {
    const frames = new FrameBuffer()
    expect(rangeOf(frames)).to.deep.equal({ firstSeq: 1, lastSeq: 0, length: 0 })
    expect([frames.bytes, frames.bytesAfter(0)]).to.deep.equal([0, 0])
  })

  it('frames are numbered from 1, and push returns the size in bytes', () => {
    const frames = new FrameBuffer()
    expect([frames.push('a'), frames.push('é€😀')]).to.deep.equal([1, 2 + 3 + 4])
    expect(rangeOf(frames)).to.deep.equal({ firstSeq: 1, lastSeq: 2, length: 2 })
    expect(String(frames.readAfter(0).content)).to.equal('aé€😀')
    expect(String(frames.readAfter(1).content)).to.equal('é€😀')
    expect(frames.readAfter(1).lastSeq).to.equal(2)
  })

  it('slabs double from 2 KiB to 32 KiB', () => {
    const frames = new FrameBuffer()
    const sizes: number[] = []
    for (let i = 0; i < 300; i++) {
      frames.push('x'.repeat(KIB))
      if (frames.bytes !== sizes.at(-1)) sizes.push(frames.bytes)
    }
    const growth = sizes.map((bytes, i) => (bytes - (sizes[i - 1] ?? 0)) / KIB)
    expect(growth).to.deep.equal([2, 4, 8, 16, ...Array(9).fill(32)])
  })

  it('a frame that fills the slab exactly goes into it; one byte more takes a new slab', () => {
    const exact = bufferOf(KIB, KIB)
    expect([exact.bytes, read(exact, 0)]).to.deep.equal([2 * KIB, [2 * KIB, 2]])
    const over = bufferOf(KIB, KIB + 1)
    expect([over.bytes, read(over, 0), read(over, 1)]).to.deep.equal([6 * KIB, [KIB, 1], [KIB + 1, 2]])
  })

  it('whether a frame fits is decided by its bytes, not by its characters', () => {
    const frames = bufferOf(KIB)
    frames.push('é'.repeat(KIB / 2 + 1))
    expect(frames.bytes).to.equal(6 * KIB)
    const fitting = bufferOf(KIB)
    fitting.push('é'.repeat(KIB / 2))
    expect(fitting.bytes).to.equal(2 * KIB)
  })

  it('a frame larger than a slab gets a slab of its own size', () => {
    const first = bufferOf(5 * KIB)
    expect([first.bytes, read(first, 0)]).to.deep.equal([5 * KIB, [5 * KIB, 1]])
    const later = bufferOf(1, 100 * KIB)
    expect(later.bytes).to.equal(102 * KIB)
  })

  it('a read ends with its slab; the next read goes on there', () => {
    const frames = bufferOf(KIB, KIB, KIB, 10)
    expect([read(frames, 0), read(frames, 1)]).to.deep.equal([
      [2 * KIB, 2],
      [KIB, 2],
    ])
    expect([read(frames, 2), read(frames, 3)]).to.deep.equal([
      [KIB + 10, 4],
      [10, 4],
    ])
  })

  it('bytesAfter counts the frames after a number, over all slabs', () => {
    const frames = bufferOf(KIB, KIB, 100, 10)
    expect([0, 1, 2, 3, 4, 9].map((seq) => frames.bytesAfter(seq))).to.deep.equal([
      2 * KIB + 110,
      KIB + 110,
      110,
      10,
      0,
      0,
    ])
  })

  it('a slab is freed when its last frame is dropped', () => {
    const frames = bufferOf(KIB, KIB, 100)
    frames.shift()
    expect([rangeOf(frames), frames.bytes]).to.deep.equal([{ firstSeq: 2, lastSeq: 3, length: 2 }, 6 * KIB])
    expect(read(frames, 1)).to.deep.equal([KIB, 2])
    frames.shift()
    expect([rangeOf(frames), frames.bytes]).to.deep.equal([{ firstSeq: 3, lastSeq: 3, length: 1 }, 4 * KIB])
    expect(read(frames, 2)).to.deep.equal([100, 3])
    expect(frames.bytesAfter(0)).to.equal(100)
    frames.shift()
    expect([rangeOf(frames), frames.bytes]).to.deep.equal([{ firstSeq: 4, lastSeq: 3, length: 0 }, 0])
  })

  it('numbers go on after clear, which frees all slabs', () => {
    const frames = bufferOf(KIB, KIB, KIB)
    frames.clear()
    expect([rangeOf(frames), frames.bytes]).to.deep.equal([{ firstSeq: 4, lastSeq: 3, length: 0 }, 0])
    frames.push('ab')
    expect([rangeOf(frames), frames.bytes]).to.deep.equal([{ firstSeq: 4, lastSeq: 4, length: 1 }, 2 * KIB])
    expect(read(frames, 3)).to.deep.equal([2, 4])
  })

  it('reading before the first slab throws', () => {
    const frames = bufferOf(2 * KIB, 1)
    frames.shift()
    expect(() => frames.readAfter(0)).to.throw(RangeError, 'no frame after 0')
    expect(() => new FrameBuffer().readAfter(0)).to.throw(RangeError)
  })

  it('D32.7a: numbers that were left out are passed over, also at the end, and count as no frames', () => {
    const frames = new FrameBuffer()
    frames.push('a')
    frames.skipTo(4)
    frames.push('b')
    frames.skipTo(100)
    expect(rangeOf(frames)).to.deep.equal({ firstSeq: 1, lastSeq: 100, length: 2 })
    expect([frames.newestSeq, frames.bytes, frames.bytesAfter(1)]).to.deep.equal([5, 2, 1])
    expect([read(frames, 0), read(frames, 1), read(frames, 3), read(frames, 5)]).to.deep.equal([
      [1, 1],
      [1, 5],
      [1, 5],
      [0, 100],
    ])
    expect(String(frames.readAfter(3).content)).to.equal('b')
    expect([0, 1, 4, 5].map((seq) => frames.nextAfter(seq))).to.deep.equal([1, 5, 5, undefined])
    frames.push('cc')
    expect([read(frames, 5), frames.newestSeq]).to.deep.equal([[2, 101], 101])
    expect([frames.bytes, frames.readAfter(5).size], 'a slab of the size of the frame').to.deep.equal([2 + 2, 2])
    frames.push('d')
    expect([read(frames, 101), frames.readAfter(101).size]).to.deep.equal([[1, 102], 1])
    frames.shift()
    frames.shift()
    expect(rangeOf(frames)).to.deep.equal({ firstSeq: 6, lastSeq: 102, length: 2 })
  })

  it('the next frame after a number is looked for inside a slab, too', () => {
    const frames = bufferOf(1, 1, 1)
    expect([0, 1, 2, 3].map((seq) => frames.nextAfter(seq))).to.deep.equal([1, 2, 3, undefined])
  })

  it('skipping to a number that is there already changes nothing', () => {
    const frames = bufferOf(1, 1)
    for (const seq of [0, 1, 2]) frames.skipTo(seq)
    expect([rangeOf(frames), frames.bytes]).to.deep.equal([{ firstSeq: 1, lastSeq: 2, length: 2 }, 2 * KIB])
  })

  it('of a buffer that starts later, the numbers before are not kept', () => {
    const frames = new FrameBuffer()
    frames.startAt(5)
    frames.shift()
    expect(rangeOf(frames)).to.deep.equal({ firstSeq: 5, lastSeq: 4, length: 0 })
    frames.push('a')
    expect(read(frames, 4)).to.deep.equal([1, 5])
    expect(() => frames.readAfter(3)).to.throw(RangeError)
  })

  it('one read passes a limited number of them, which a message can count', () => {
    const frames = new FrameBuffer()
    frames.skipTo(100_000)
    frames.push('a')
    let seq = 0
    for (let reads = 0; seq < 100_001; reads++) {
      const [, to] = read(frames, seq)
      expect(to - seq).to.be.within(1, 65_535)
      expect(reads).to.be.below(10)
      seq = to
    }
  })
})
