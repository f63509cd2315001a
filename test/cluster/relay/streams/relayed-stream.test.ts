import { expect } from 'chai'
import {
  RelayedStream,
  type RelayedStreamHooks,
  STREAM_LIMITS,
  type StreamLimits,
} from '../../../../shared/cluster/relay/streams/relayed-stream.ts'
import { until } from '../../../support/until.ts'

/** The positions before and after these frames. */
const spanOf = (seq: number, count: number) => ({
  from: { seq: seq - 1, pieces: 0 },
  to: { seq: seq + count - 1, pieces: 0 },
})

function setUp(limits: Partial<StreamLimits> = {}, after = 0) {
  const asked: number[] = []
  let closes = 0
  const reported: number[] = []
  const gaps: string[] = []
  const failures: string[] = []
  const hooks: RelayedStreamHooks = {
    requestResend: ({ seq }) => asked.push(seq) > 0,
    onRead: ({ seq }) => reported.push(seq),
    onGap: (state) => gaps.push(state),
    onFailed: (code) => failures.push(code),
    onClosed: () => closes++,
  }
  const stream = new RelayedStream(after, hooks, { ...STREAM_LIMITS, ...limits })
  const send = (seq: number, count = 1, fields: { body?: string; isLast?: boolean } = {}) =>
    stream.accept({
      ...spanOf(seq, count),
      body: Buffer.from(fields.body ?? `${seq}+${count} `),
      isLast: fields.isLast ?? false,
    })
  const take = async () => String((await stream.next()).value?.text ?? 'END')
  return { stream, asked, reported, gaps, failures, send, take, closes: () => closes }
}

describe('relayed stream', () => {
  it('frames in order are yielded, those of one event-loop turn together', async () => {
    const { send, take } = setUp()
    const first = take()
    send(1)
    send(2, 3)
    expect(await first).to.equal('1+1 2+3 ')
    send(5, 1, { isLast: true })
    expect(await take()).to.equal('5+1 ')
    expect(await take()).to.equal('END')
  })

  it('the read position is reported every 512 frames or 24 KiB, and when the worker asks for it', async () => {
    const { stream, send, take, reported } = setUp()
    send(1, 511)
    await take()
    expect(reported).to.deep.equal([])
    send(512)
    send(513)
    expect(reported).to.deep.equal([])
    await take()
    expect(reported).to.deep.equal([513])
    send(514, 1, { body: 'x'.repeat(24 * 1024) })
    await take()
    expect(reported).to.deep.equal([513, 514])
    send(515)
    stream.reportRead()
    expect(reported).to.deep.equal([513, 514, 514])
  })

  it('lost frames are requested once; the frames behind them are not yielded before them', async () => {
    const { send, take, asked } = setUp()
    send(1)
    send(3)
    send(4)
    expect(asked).to.deep.equal([1])
    send(2, 3)
    expect(await take()).to.equal('1+1 2+3 ')
  })

  it('frames that come twice are ignored', async () => {
    const { send, take, asked } = setUp()
    send(1, 5)
    send(1, 5)
    send(4, 2)
    send(6)
    expect(await take()).to.equal('1+5 6+1 ')
    expect(asked).to.deep.equal([])
  })

  it('a heartbeat with a higher frame number shows that the latest frames were lost', () => {
    const { stream, send, asked } = setUp()
    send(1)
    stream.onBeat({ seq: 1, pieces: 0 })
    expect(asked).to.deep.equal([])
    stream.onBeat({ seq: 2, pieces: 0 })
    expect(asked).to.deep.equal([1])
  })

  it('D4.5c: after the last frame of an ended run the stream ends without a frame', async () => {
    const { stream, take, closes } = setUp({}, 7)
    const rest = take()
    stream.onEnded(7)
    expect([await rest, closes()]).to.deep.equal(['END', 1])
    stream.onEnded(7)
    expect(closes()).to.equal(1)
  })

  it('D4.5c: a stream that begins above the last frame of an ended run ends without a frame', async () => {
    const { stream, take, asked } = setUp({}, 4_294_967_295)
    stream.onEnded(7)
    expect([await take(), asked]).to.deep.equal(['END', []])
  })

  it('the message that the run has ended shows that the latest frames were lost', async () => {
    const { stream, send, take, gaps } = setUp()
    send(1)
    stream.onEnded(3)
    expect(gaps).to.deep.equal(['asked'])
    send(2, 2, { isLast: true })
    expect([await take(), await take(), gaps]).to.deep.equal(['1+1 2+2 ', 'END', ['asked', 'repaired']])
  })

  it('D4.5c: a stream that begins above the last frame begins there when the worker says so', async () => {
    const { stream, send, take, asked, reported } = setUp({}, 50)
    expect(send(8)).to.equal(false)
    stream.startAfter(7)
    expect(stream.seq).to.equal(7)
    send(9)
    expect(asked).to.deep.equal([7])
    send(8, 2, { isLast: true })
    expect(await take()).to.equal('8+2 ')
    stream.reportRead()
    expect(reported).to.deep.equal([9])
  })

  it('a stream does not go back once it has accepted a frame, and never moves forward', async () => {
    const { stream, send, take } = setUp({}, 4)
    stream.startAfter(9)
    expect(stream.seq).to.equal(4)
    send(5)
    stream.startAfter(3)
    expect([stream.seq, await take()]).to.deep.equal([5, '5+1 '])
    await stream.return()
    stream.startAfter(1)
    expect(stream.seq).to.equal(5)
  })

  it('a client that does not read costs at most the limit; dropped frames are requested once it has read the rest', async () => {
    const { send, take, asked } = setUp({ maxHeldBytes: 100 })
    send(1, 1, { body: 'x'.repeat(101) })
    send(2)
    send(3)
    expect(asked).to.deep.equal([])
    expect(await take()).to.have.length(101)
    const rest = take()
    await new Promise(setImmediate)
    expect(asked).to.deep.equal([1])
    send(2, 2)
    expect(await rest).to.equal('2+2 ')
  })

  it('a client whose dropped frames are no longer in the journal ends with slow_consumer', async () => {
    const { stream, send, take } = setUp({ maxHeldBytes: 1 })
    send(1)
    send(2)
    expect(await take()).to.equal('1+1 ')
    const rest = take()
    await new Promise(setImmediate)
    stream.onGone() // The worker's answer to the request.
    expect(await rest).to.include('slow_consumer')
  })

  it('when the worker is lost the stream ends after the frames that were received', async () => {
    const { stream, send, take } = setUp()
    send(1)
    stream.fail('worker_lost')
    send(2)
    expect(await take()).to.equal('1+1 ')
    expect(await take())
      .to.match(/^id: 1\n/)
      .and.include('worker_lost')
    expect(await take()).to.equal('END')
  })

  it('a stream that has received its last frame cannot fail', async () => {
    const { stream, send, take } = setUp()
    send(1, 1, { isLast: true })
    stream.fail('worker_lost')
    stream.onBeat({ seq: 9, pieces: 0 })
    expect(await take()).to.equal('1+1 ')
    expect(await take()).to.equal('END')
  })

  it('the listener gets the last frames when they are read, or the failure in their place, and nothing of a reader that has left', async () => {
    const lastOf = async (act: (parts: ReturnType<typeof setUp>) => unknown) => {
      const parts = setUp()
      const heard: string[] = []
      parts.stream.onLast(({ text, failure }) => heard.push(failure ?? String(text)))
      parts.send(1)
      await parts.take()
      await act(parts)
      return heard
    }
    const readRest = async ({ take }: ReturnType<typeof setUp>) => {
      while ((await take()) !== 'END');
    }
    const end = (parts: ReturnType<typeof setUp>) => {
      parts.send(2)
      parts.send(3, 1, { isLast: true })
      return readRest(parts)
    }
    expect(await lastOf(end)).to.deep.equal(['2+1 3+1 '])
    expect(await lastOf((parts) => (parts.stream.fail('worker_lost'), readRest(parts)))).to.deep.equal(['worker_lost'])
    expect(await lastOf((parts) => (parts.send(2, 1, { isLast: true }), parts.stream.return()))).to.deep.equal([])
  })

  it('closing is reported once, and a waiting reader is released', async () => {
    const { stream, take, closes } = setUp()
    const waiting = take()
    await stream.return()
    await stream.return()
    expect(await waiting).to.equal('END')
    expect(closes()).to.equal(1)
  })

  it('the read position is not reported below 512 frames and 24 KiB', async () => {
    const { send, take, reported } = setUp({}, 100)
    send(101, 511, { body: 'x'.repeat(24 * 1024 - 1) })
    await take()
    expect(reported).to.deep.equal([])
    send(612)
    await take()
    expect(reported).to.deep.equal([612])
    send(613, 512)
    await take()
    expect(reported).to.deep.equal([612, 1124])
  })

  it('the read position does not include frames that the client has not read', async () => {
    const { stream, send, take, reported } = setUp()
    send(1)
    stream.reportRead()
    await take()
    stream.reportRead()
    expect(reported).to.deep.equal([0, 1])
  })

  it('lost frames are reported as a gap when they are requested and when they come; dropped ones are not', async () => {
    const { send, take, asked, gaps } = setUp({ maxHeldBytes: 10 })
    send(2)
    send(1, 2)
    expect(gaps).to.deep.equal(['asked', 'repaired'])
    send(3, 1, { body: 'x'.repeat(20) })
    send(4)
    expect(await take()).to.equal('1+2 ')
    const rest = take()
    await new Promise(setImmediate)
    expect(asked).to.deep.equal([0, 2])
    send(3)
    expect(await rest).to.equal('3+1 ')
    expect(gaps).to.deep.equal(['asked', 'repaired'])
  })

  it('frames that are only partly new are requested from the next one on', () => {
    const { stream, send, asked } = setUp()
    send(1, 2)
    send(2, 2)
    expect([stream.seq, asked]).to.deep.equal([2, [2]])
  })

  it('while frames are dropped a loss is not requested', async () => {
    const { stream, send, asked } = setUp({ maxHeldBytes: 1 })
    send(1)
    send(2)
    send(9)
    stream.onBeat({ seq: 9, pieces: 0 })
    expect(asked).to.deep.equal([])
  })

  it('frames that are gone from the journal end the stream with stream_gap when the client has read in time', async () => {
    const lost = setUp()
    lost.send(2)
    lost.stream.onGone()
    expect(await lost.take()).to.include('stream_gap')
    const idle = setUp()
    idle.stream.onGone()
    expect(await idle.take()).to.include('stream_gap')
    expect([lost.failures, idle.failures]).to.deep.equal([['stream_gap'], ['stream_gap']])
  })

  it('frames that are gone while the client has not read the rest make it a slow consumer', () => {
    const { stream, send, failures } = setUp({ maxHeldBytes: 1 })
    send(1)
    send(2)
    stream.onGone()
    expect(failures).to.deep.equal(['slow_consumer'])
  })

  it('the first failure ends the stream, and nothing is requested or accepted after it', async () => {
    const { stream, send, asked, failures, take } = setUp({ askAgainMs: 1 })
    send(2)
    expect(asked).to.deep.equal([0])
    stream.fail('worker_lost')
    stream.fail('relay_unavailable')
    expect([send(1), failures]).to.deep.equal([false, ['worker_lost']])
    const other = setUp({ askAgainMs: 1 })
    other.send(2)
    await until(() => other.asked.length > 2, { what: 'another stream to ask again', everyMs: 1 })
    await other.stream.return()
    expect(asked).to.deep.equal([0])
    expect(await take()).to.include('worker_lost')
    expect([send(1), stream.seq]).to.deep.equal([false, 0])
    stream.fail('relay_unavailable')
    expect(await take()).to.equal('END')
    expect(failures).to.deep.equal(['worker_lost'])
  })

  it('a burst is kept when the stream has failed, because it could not be requested again', async () => {
    const { stream, send, take } = setUp({ maxHeldBytes: 100, burstMs: 5 })
    for (let seq = 1; seq <= 4; seq++) send(seq, 1, { body: 'x'.repeat(20) })
    stream.fail('worker_lost')
    const other = setUp({ maxHeldBytes: 100, burstMs: 5 })
    for (let seq = 1; seq <= 4; seq++) other.send(seq, 1, { body: 'x'.repeat(20) })
    await until(() => other.stream.seq !== 4, { what: 'the burst of another stream to be dropped', everyMs: 1 })
    expect([await take(), await take()].join('')).to.have.length(80)
    expect(await take()).to.match(/^id: 4\n/)
  })

  it('a closed stream requests, accepts and yields nothing', async () => {
    const { stream, send, take, asked, failures, closes } = setUp({ askAgainMs: 1 })
    send(1)
    send(3)
    await stream.return()
    stream.fail('worker_lost')
    stream.onBeat({ seq: 9, pieces: 0 })
    expect([send(2), await take(), failures, closes()]).to.deep.equal([false, 'END', [], 1])
    const other = setUp({ askAgainMs: 1 })
    other.send(2)
    await until(() => other.asked.length > 2, { what: 'another stream to ask again', everyMs: 1 })
    await other.stream.return()
    expect(asked).to.deep.equal([1])
  })

  it('a stream that failed and was closed before its reader came yields no failure', async () => {
    const { stream, take } = setUp()
    stream.fail('worker_lost')
    await stream.return()
    expect(await take()).to.equal('END')
  })

  it('a stream is an iteration, closed once when its last frame was yielded', async () => {
    const { stream, send, closes } = setUp({}, 4)
    send(5, 2, { isLast: true })
    const seen: unknown[] = []
    for await (const { text, lastSeq } of stream) seen.push([String(text), lastSeq])
    expect([seen, closes()]).to.deep.equal([[['5+2 ', 6]], 1])
  })

  it('accept returns whether the frames were accepted', () => {
    const { send } = setUp({ maxHeldBytes: 1 })
    expect([send(1), send(1), send(3), send(2)]).to.deep.equal([true, false, false, false])
  })

  it('a failed stream yields its failure as a frame, and then ends', async () => {
    const { stream, send } = setUp()
    send(1)
    stream.fail('worker_lost')
    const seen: [string, number][] = []
    for await (const { text, lastSeq } of stream) seen.push([String(text), lastSeq])
    expect(seen.map(([, lastSeq]) => lastSeq)).to.deep.equal([1, 1])
    expect(seen[1]?.[0]).to.include('worker_lost')
  })
})
