import { expect } from 'chai'
import { FrameReader } from '../../../shared/cluster/journal/frame-reader.ts'
import type { Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame } from '../../../shared/cluster/journal/frames.ts'

async function* streamOf(...frames: Frames[]) {
  yield* frames
}

describe('frame reader', () => {
  it('a large frame that comes in pieces is returned as a whole', async () => {
    const reader = new FrameReader(
      streamOf(
        { text: 'one', lastSeq: 1 },
        { text: 'lar', lastSeq: 1, pieces: 1 },
        { text: Buffer.from('g'), lastSeq: 1, pieces: 2 },
        { text: 'e', lastSeq: 2 },
        { text: 'three', lastSeq: 3 },
      ),
    )
    expect(await reader.next()).to.deep.equal({ text: 'one', lastSeq: 1 })
    expect(await reader.next()).to.deep.equal({ text: Buffer.from('large'), lastSeq: 2 })
    expect(await reader.next()).to.deep.equal({ text: 'three', lastSeq: 3 })
    expect(await reader.next()).to.equal(undefined)
  })

  it('a failure inside a large frame is returned at once, without the pieces before it', async () => {
    const failure = failureFrame(1, 'worker_lost')
    const reader = new FrameReader(streamOf({ text: 'lar', lastSeq: 1, pieces: 1 }, failure))
    expect(await reader.next()).to.deep.equal(failure)
  })

  it('a silence is reported each time that it lasts, and the wait for the same frames goes on over it', async () => {
    const coming = Promise.withResolvers<IteratorResult<Frames>>()
    let asked = 0
    const stream = { next: () => (asked++ === 0 ? coming.promise : Promise.resolve({ done: true, value: undefined })) }
    const reader = new FrameReader({ [Symbol.asyncIterator]: () => stream as AsyncIterator<Frames> }, 1)
    expect([await reader.next(), await reader.next(), asked]).to.deep.equal(['silence', 'silence', 1])
    coming.resolve({ done: false, value: { text: 'late', lastSeq: 1 } })
    expect([await reader.next(), await reader.next()]).to.deep.equal([{ text: 'late', lastSeq: 1 }, undefined])
    await reader.return() // This stream has nothing to detach from.
  })

  it('leaves no timer when the frames have come, and detaches from the stream', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length
    await new Promise(setImmediate) // mocha has set its own timer by now.
    const before = timers()
    const stream = streamOf({ text: 'one', lastSeq: 1 }, { text: 'two', lastSeq: 2 })
    const reader = new FrameReader(stream, 60_000)
    await reader.next()
    expect(timers()).to.equal(before)
    await reader.return()
    expect(await stream.next()).to.deep.equal({ done: true, value: undefined })
  })
})
