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
})
