import { expect } from 'chai'
import { FollowedRun } from '../../../shared/cluster/following/followed-run.ts'
import { UNKNOWN } from '../../../shared/cluster/following/port.ts'
import { RunFinder, type RunFinderDeps } from '../../../shared/cluster/following/run-finder.ts'
import type { FrameStream, Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../../../shared/cluster/journal/frames.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'

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

/** The stream of a run that is at these places one after the other, and nowhere after the last; a promise of a place is one that is looked for. */
function followed(
  [first, ...next]: readonly [FrameStream, ...(FrameStream | Promise<FrameStream>)[]],
  { mayMoveBegun = false, onAsked = (_after: number) => {} } = {},
) {
  const processes = {
    followRun: async (_place: unknown, after: number) => {
      onAsked(after)
      return next.shift()
    },
  } as unknown as RunFinderDeps['processes']
  let epoch = 1
  const places: RunFinderDeps['places'] = {
    find: async () => UNKNOWN,
    findNext: async () => (next.length > 0 ? { state: 'at', epoch: ++epoch } : UNKNOWN),
    habits: { mayMoveBegun, movesWithinMs: 0, retryMs: 1 },
  }
  const stream = new RunFinder({ places, processes }).followed({ tenant: DEFAULT_TENANT, runId: 'r', epoch }, first)
  return stream as FollowedRun
}

const seqsOf = async (stream: FollowedRun): Promise<(number | string)[]> => {
  const seqs: (number | string)[] = []
  for await (const { lastSeq, failure } of stream) seqs.push(failure ?? lastSeq)
  return seqs
}

describe('the stream of a run that may move', () => {
  it('goes on elsewhere when it breaks off before its first frame, as often as that happens', async () => {
    for (const code of ['stream_gap', 'worker_lost'] as const) {
      const broken = [streamOf([failureFrame(0, code)]), streamOf([failureFrame(0, code)])] as const
      expect(await seqsOf(followed([...broken, streamOf([frame(1), frame(2)])]))).to.deep.equal([1, 2])
      expect(broken.map(({ isReturned }) => isReturned)).to.deep.equal([true, true])
    }
  })

  it('ends with its failure when the run is nowhere else, has sent a frame already, or fails for another reason', async () => {
    const ends: [Frames[], ReaderFailure][] = [
      [[failureFrame(0, 'worker_lost')], 'worker_lost'],
      [[frame(3), failureFrame(3, 'worker_lost')], 'worker_lost'],
      [[failureFrame(0, 'relay_unavailable')], 'relay_unavailable'],
    ]
    for (const [values, code] of ends) expect((await seqsOf(followed([streamOf(values)]))).at(-1)).to.equal(code)
  })

  it('D32.7a: where runs outlive their worker it goes on behind its last frame, unless it breaks off inside a large one', async () => {
    const after: number[] = []
    const options = { mayMoveBegun: true, onAsked: (seq: number) => void after.push(seq) }
    const elsewhere = streamOf([frame(9), frame(10)])
    const stream = followed([streamOf([frame(3), failureFrame(3, 'worker_lost')]), elsewhere], options)
    expect([await seqsOf(stream), after]).to.deep.equal([[3, 9, 10], [3]])
    const inside = [frame(3), { text: 'half', lastSeq: 3, pieces: 1 }, failureFrame(3, 'worker_lost')]
    const cut = followed([streamOf(inside), elsewhere], options)
    const heard: unknown[] = []
    cut.onLast(({ failure }) => heard.push(failure)) // A run that may go on is not recorded as lost.
    expect([await seqsOf(cut), heard, after]).to.deep.equal([[3, 3, 'relay_unavailable'], ['relay_unavailable'], [3]])
  })

  it('D32.7a: has its client come back when the run may be somewhere and cannot be followed there', async () => {
    const onAsked = () => expect.fail('no answer')
    const broken = streamOf([frame(3), failureFrame(3, 'worker_lost')])
    const stream = followed([broken, streamOf([])], { mayMoveBegun: true, onAsked })
    const heard: unknown[] = []
    stream.onLast(({ failure }) => heard.push(failure))
    expect(await seqsOf(stream)).to.deep.equal([3, 'relay_unavailable'])
    expect(heard).to.deep.equal(['relay_unavailable'])
  })

  it('its listener gets the last frames of where the run has ended, and none of a stream that broke off before', async () => {
    const heardOf = async (...places: [FrameStream, ...FrameStream[]]) => {
      const heard: (number | string)[] = []
      const stream = followed(places)
      stream.onLast(({ lastSeq, failure }) => heard.push(failure ?? lastSeq))
      await seqsOf(stream)
      return heard
    }
    const broken = () => streamOf([failureFrame(0, 'worker_lost')])
    expect(await heardOf(broken(), streamOf([frame(1), frame(2)]))).to.deep.equal([2])
    expect(await heardOf(streamOf([frame(1), failureFrame(1, 'worker_lost')]))).to.deep.equal(['worker_lost'])
    expect(await heardOf(broken(), broken())).to.deep.equal(['worker_lost'])
  })

  it('a reader that leaves while the run is looked for leaves its new stream, too', async () => {
    const found = Promise.withResolvers<FrameStream>()
    const asked = Promise.withResolvers<void>()
    const stream = followed([streamOf([failureFrame(0, 'worker_lost')]), found.promise], {
      onAsked: () => asked.resolve(),
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

describe('a followed run whose silences are noticed', () => {
  type Silence = { ms?: number; ends?: (Frames | undefined)[] }
  /** The stream of a run that goes nowhere else; at each silence it has the next of these ends, and `undefined` is none. */
  function watched(stream: FrameStream, { ms = 60_000, ends = [] }: Silence = {}) {
    const asked: number[] = []
    const findEnd = async (after: number) => {
      const end = ends[asked.push(after) - 1]
      return end && { end }
    }
    const run = new FollowedRun(stream, {
      after: 0,
      mayGoOn: () => false,
      followElsewhere: async () => expect.fail('it goes nowhere else'),
      silence: { ms, findEnd },
    })
    return { run, asked }
  }
  const readAll = async (run: AsyncIterable<Frames>) => {
    const all: Frames[] = []
    for await (const each of run) all.push(each)
    return all
  }

  it('gets a large frame, which comes in pieces, as a whole', async () => {
    const pieces = [
      { text: 'lar', lastSeq: 1, pieces: 1 },
      { text: Buffer.from('g'), lastSeq: 1, pieces: 2 },
      { text: 'e', lastSeq: 2 },
    ]
    const { run } = watched(streamOf([frame(1), ...pieces, frame(3)]))
    expect(await readAll(run)).to.deep.equal([frame(1), { text: Buffer.from('large'), lastSeq: 2 }, frame(3)])
  })

  it('gets a failure inside a large frame at once, without the pieces before it', async () => {
    const failure = failureFrame(1, 'worker_lost')
    const { run } = watched(streamOf([{ text: 'lar', lastSeq: 1, pieces: 1 }, failure]))
    expect(await readAll(run)).to.deep.equal([failure])
  })

  it('asks at each silence whether the run has ended, while the wait for the same frames goes on', async () => {
    let reads = 0
    const stream = { next: () => (++reads === 1 ? Promise.resolve({ done: false, value: frame(4) }) : never) }
    const never = new Promise<IteratorResult<Frames>>(() => {})
    const source = { [Symbol.asyncIterator]: () => stream as AsyncIterator<Frames> }
    const { run, asked } = watched(source, { ms: 1, ends: [undefined, undefined, frame(7)] })
    expect(await readAll(run)).to.deep.equal([frame(4), frame(7)])
    expect([asked, reads]).to.deep.equal([[4, 4, 4], 2])
  })

  it('leaves no timer when the frames have come, and leaves the stream', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length
    await new Promise(setImmediate) // mocha has set its own timer by now.
    const before = timers()
    const stream = streamOf([frame(1), frame(2)])
    const { run } = watched(stream)
    await run.next()
    expect(timers()).to.equal(before)
    await run.return()
    expect(stream.isReturned).to.equal(true)
  })
})
