import { expect } from 'chai'
import { type FollowElsewhere, FollowedRun } from '../../../shared/cluster/following/followed-run.ts'
import type { FrameStream, Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../../../shared/cluster/journal/frames.ts'

const frame = (lastSeq: number): Frames => ({ text: `${lastSeq}`, lastSeq })

/** A stream of these values, which notes when it is returned. */
function streamOf(values: readonly Frames[]): FrameStream & { isReturned: boolean } {
  const left = [...values]
  let onLast = (_last: Frames) => {}
  const stream = {
    isReturned: false,
    onLast: (listener: (last: Frames) => void) => void (onLast = listener),
    async next(): Promise<IteratorResult<Frames, undefined>> {
      const value = left.shift()
      if (value && left.length === 0) onLast(value)
      return value ? { done: false, value } : { done: true, value: undefined }
    },
    async return(): Promise<IteratorResult<Frames, undefined>> {
      stream.isReturned = true
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]: () => stream,
  }
  return stream
}

const followed = (frames: FrameStream, followElsewhere: FollowElsewhere, mayMoveBegun = false) =>
  new FollowedRun(frames, { followElsewhere, mayMoveBegun })

const seqsOf = async (stream: FollowedRun): Promise<(number | string)[]> => {
  const seqs: (number | string)[] = []
  for await (const { lastSeq, failure } of stream) seqs.push(failure ?? lastSeq)
  return seqs
}

describe('the stream of a run that may move', () => {
  it('goes on elsewhere when it breaks off before its first frame, as often as that happens', async () => {
    for (const code of ['stream_gap', 'worker_lost'] as const) {
      const broken = [streamOf([failureFrame(0, code)]), streamOf([failureFrame(0, code)])] as const
      const places = [broken[1], streamOf([frame(1), frame(2)])]
      expect(await seqsOf(followed(broken[0], async () => places.shift()))).to.deep.equal([1, 2])
      expect(broken.map(({ isReturned }) => isReturned)).to.deep.equal([true, true])
    }
  })

  it('ends with its failure when the run is nowhere else, has sent a frame already, or fails for another reason', async () => {
    const ends: [Frames[], ReaderFailure][] = [
      [[failureFrame(0, 'worker_lost')], 'worker_lost'],
      [[frame(3), failureFrame(3, 'worker_lost')], 'worker_lost'],
      [[failureFrame(0, 'relay_unavailable')], 'relay_unavailable'],
    ]
    for (const [values, code] of ends) {
      expect((await seqsOf(followed(streamOf(values), async () => undefined))).at(-1)).to.equal(code)
    }
  })

  it('D32.7a: where runs outlive their worker it goes on behind its last frame, unless it breaks off inside a large one', async () => {
    const after: number[] = []
    const places = [streamOf([frame(9), frame(10)])]
    const elsewhere = async (seq: number) => (after.push(seq), places.shift())
    const stream = followed(streamOf([frame(3), failureFrame(3, 'worker_lost')]), elsewhere, true)
    expect([await seqsOf(stream), after]).to.deep.equal([[3, 9, 10], [3]])
    const inside = [frame(3), { text: 'half', lastSeq: 3, pieces: 1 }, failureFrame(3, 'worker_lost')]
    const cut = followed(streamOf(inside), elsewhere, true)
    const heard: unknown[] = []
    cut.onLast(({ failure }) => heard.push(failure)) // A run that may go on is not recorded as lost.
    expect([await seqsOf(cut), heard]).to.deep.equal([[3, 3, 'relay_unavailable'], ['relay_unavailable']])
  })

  it('D32.7a: has its client come back when the run may be somewhere and cannot be followed there', async () => {
    const stream = followed(
      streamOf([frame(3), failureFrame(3, 'worker_lost')]),
      async () => expect.fail('no answer'),
      true,
    )
    const heard: unknown[] = []
    stream.onLast(({ failure }) => heard.push(failure))
    expect(await seqsOf(stream)).to.deep.equal([3, 'relay_unavailable'])
    expect(heard).to.deep.equal(['relay_unavailable'])
  })

  it('its listener gets the last frames of where the run has ended, and none of a stream that broke off before', async () => {
    const heardOf = async (places: FrameStream[]) => {
      const heard: (number | string)[] = []
      const [first = expect.fail(), ...others] = places
      const stream = followed(first, async () => others.shift())
      stream.onLast(({ lastSeq, failure }) => heard.push(failure ?? lastSeq))
      await seqsOf(stream)
      return heard
    }
    const broken = () => streamOf([failureFrame(0, 'worker_lost')])
    expect(await heardOf([broken(), streamOf([frame(1), frame(2)])])).to.deep.equal([2])
    expect(await heardOf([streamOf([frame(1), failureFrame(1, 'worker_lost')])])).to.deep.equal(['worker_lost'])
    expect(await heardOf([broken(), broken()])).to.deep.equal(['worker_lost'])
  })

  it('a reader that leaves while the run is looked for leaves its new stream, too', async () => {
    const found = Promise.withResolvers<FrameStream>()
    const asked = Promise.withResolvers<void>()
    const stream = followed(streamOf([failureFrame(0, 'worker_lost')]), () => {
      asked.resolve()
      return found.promise
    })
    const next = stream.next()
    await asked.promise
    await stream.return()
    const elsewhere = streamOf([frame(1)])
    found.resolve(elsewhere)
    expect(await next).to.deep.equal({ done: true, value: undefined })
    expect(elsewhere.isReturned).to.equal(true)
  })
})
