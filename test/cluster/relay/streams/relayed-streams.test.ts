import { expect } from 'chai'
import { STREAM_LIMITS } from '../../../../shared/cluster/relay/streams/relayed-stream.ts'
import { RelayedStreams, type StreamsDeps } from '../../../../shared/cluster/relay/streams/relayed-streams.ts'
import {
  LAST,
  RECORD,
  type ReceivedRecord,
  record,
  type WireRecord,
} from '../../../../shared/cluster/relay/wire/records.ts'
import { type CounterName, NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { until } from '../../../support/until.ts'

function setUp({ isBusAway = () => false, limits = STREAM_LIMITS }: Partial<StreamsDeps> = {}) {
  const sent: [epoch: number, type: number, stream: number, seq: number][] = []
  const counted: Partial<Record<CounterName, number>> = {}
  const send: StreamsDeps['send'] = (epoch, { type, stream, seq }) => sent.push([epoch, type, stream, seq])
  const streams = new RelayedStreams({
    send,
    sendLater: send,
    isAlive: (epoch) => epoch !== 666,
    isBusAway,
    limits,
    metrics: {
      ...NO_METRICS,
      count(name, by = 1) {
        counted[name] = (counted[name] ?? 0) + by
      },
    },
  })
  return { streams, sent, counted }
}

const received = (type: WireRecord['type'], fields: Partial<Omit<WireRecord, 'type' | 'body'>>): ReceivedRecord => ({
  ...record(type, fields),
  body: Buffer.from('x'),
})

/** A heartbeat with these numbers: of each stream its own, its last frame, and the pieces of the next one. */
function beatOf(...numbers: number[]): ReceivedRecord {
  return { ...received(RECORD.beat, {}), body: Buffer.from(Uint32Array.from(numbers).buffer) }
}

describe('relayed streams', () => {
  it('a stream accepts frames from its own worker only', async () => {
    const { streams, counted } = setUp()
    const { number, stream } = streams.open(7, 0)
    streams.onRecord(8, received(RECORD.frames, { stream: number, seq: 1, count: 5 }))
    expect(stream.seq).to.equal(0)
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 1, count: 5 }))
    expect(stream.seq).to.equal(5)
    expect(counted).to.deep.equal({ frames_relayed: 5 })
    await stream.return()
  })

  it('a stream that is expected is opened by the executor that sends it, also by a heartbeat when the frames were lost; without a reader it is detached', async () => {
    const { streams, sent } = setUp()
    const begun: number[] = []
    const [first = 0, second = 0, unread = 0] = [true, true, false].map((isRead) =>
      streams.expect((epoch, open) => {
        begun.push(epoch)
        if (isRead) open()
      }),
    )
    streams.onRecord(666, received(RECORD.frames, { stream: first, seq: 1, count: 1 }))
    expect([begun, streams.size]).to.deep.equal([[], 0])
    streams.onRecord(7, received(RECORD.frames, { stream: first, seq: 1, count: 1 }))
    streams.onRecord(7, beatOf(second, 3, 0))
    streams.onRecord(8, beatOf(first, 9, 0))
    streams.onRecord(7, received(RECORD.frames, { stream: unread, seq: 1, count: 1 }))
    expect([begun, streams.size]).to.deep.equal([[7, 7, 7], 2])
    expect(sent).to.deep.equal([
      [7, RECORD.resend, second, 0],
      [8, RECORD.detach, first, 0],
      [7, RECORD.detach, unread, 0],
    ])
    streams.fail('relay_unavailable')
  })

  it('a gap is counted when its frames are requested, when they come, and when they are gone', async () => {
    const { streams, counted, sent } = setUp()
    const { number, stream } = streams.open(7, 0)
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 2, count: 1 }))
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 3, count: 1 }))
    expect(sent).to.deep.equal([[7, RECORD.resend, number, 0]])
    expect(counted).to.deep.equal({ gaps_asked: 1 })
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 1, count: 3 }))
    expect(counted).to.deep.equal({ gaps_asked: 1, gaps_repaired: 1, frames_relayed: 3 })
    streams.onRecord(7, beatOf(number, 4, 0))
    streams.onRecord(7, received(RECORD.gap, { stream: number }))
    expect(counted).to.include({ gaps_asked: 2, gaps_repaired: 1, gaps_lost: 1 })
    await stream.return()
  })

  it('the streams of a lost worker or relay are counted as lost; a stream of a draining worker is not', async () => {
    const { streams, counted } = setUp()
    const opened = [7, 7, 8, 9].map((epoch) => streams.open(epoch, 0))
    opened[3]?.stream.fail('worker_draining')
    streams.fail('worker_lost', 7)
    expect(counted).to.deep.equal({ streams_lost: 2 })
    streams.fail('relay_unavailable')
    expect(counted).to.deep.equal({ streams_lost: 3 })
    for (const { stream } of opened) await stream.return()
  })

  it('closing a stream sends detach to its worker, unless the worker is gone', async () => {
    const { streams, sent } = setUp()
    const [alive, gone] = [streams.open(7, 0), streams.open(666, 0)]
    await Promise.all([alive.stream.return(), gone.stream.return()])
    expect(sent).to.deep.equal([[7, RECORD.detach, alive.number, 0]])
    expect(streams.size).to.equal(0)
  })

  it('D4.5b: detach is sent again when a heartbeat shows that it was lost', async () => {
    const { streams, sent } = setUp()
    const { number, stream } = streams.open(7, 0)
    streams.onRecord(7, beatOf(number, 0, 0))
    await stream.return()
    sent.length = 0
    streams.onRecord(7, beatOf(number, 0, 0))
    expect(sent).to.deep.equal([[7, RECORD.detach, number, 0]])
  })

  it('a drain waits until all streams have ended, and no longer than its limit', async () => {
    const { streams } = setUp()
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
    await streams.ended(60_000)
    const [first, second] = [streams.open(7, 0), streams.open(7, 0)]
    const before = timers()
    let hasEnded = false
    const ended = streams.ended(60_000).then(() => {
      hasEnded = true
    })
    await first.stream.return()
    await new Promise(setImmediate)
    expect([hasEnded, timers()]).to.deep.equal([false, before + 1])
    await second.stream.return()
    await ended
    expect(timers()).to.equal(before)
    streams.open(7, 0)
    await streams.ended(10)
    expect(streams.size).to.equal(1)
  })

  it('each stream has a number of its own', () => {
    const { streams } = setUp()
    expect([1, 2, 3].map(() => streams.open(7, 0).number)).to.deep.equal([1, 2, 3])
    expect(streams.size).to.equal(3)
  })

  it('a stream with the LAST flag ends; other records do not change it', async () => {
    const { streams, counted } = setUp()
    const { number, stream } = streams.open(7, 4)
    for (const type of [RECORD.call, RECORD.ack, RECORD.detach]) {
      streams.onRecord(7, received(type, { stream: number, seq: 5, count: 1, flags: LAST }))
    }
    expect([stream.seq, counted]).to.deep.equal([4, {}])
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 5, count: 1, flags: LAST }))
    const seen: number[] = []
    for await (const { lastSeq } of stream) seen.push(lastSeq)
    expect([seen, streams.size]).to.deep.equal([[5], 0])
  })

  it('frames that are not accepted are not counted as relayed', async () => {
    const { streams, counted } = setUp()
    const { number, stream } = streams.open(7, 4)
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 4, count: 1 }))
    expect(counted).to.deep.equal({})
    await stream.return()
  })

  it('a worker that asks for the read position gets it', async () => {
    const { streams, sent } = setUp()
    const { number, stream } = streams.open(7, 4)
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 5, count: 2 }))
    await stream.next()
    streams.onRecord(7, received(RECORD.askReadPosition, { stream: number }))
    expect(sent).to.deep.equal([[7, RECORD.readPosition, number, 6]])
    await stream.return()
  })

  it('while Redis is unreachable lost frames are not requested', async () => {
    const { streams, sent, counted } = setUp({ isBusAway: () => true })
    const { number, stream } = streams.open(7, 0)
    streams.onRecord(7, beatOf(number, 1, 0))
    expect([sent, counted]).to.deep.equal([[], { gaps_asked: 1 }])
    await stream.return()
  })

  it('a heartbeat names many streams, and a number that was cut off at its end is ignored', async () => {
    const { streams, sent } = setUp()
    const [first, second] = [streams.open(7, 0), streams.open(7, 0)]
    const beat = beatOf(first.number, 0, 0, second.number, 3, 0, 99, 1, 0, 98)
    streams.onRecord(7, beat)
    expect(sent).to.deep.equal([
      [7, RECORD.resend, second.number, 0],
      [7, RECORD.detach, 99, 0],
    ])
    await Promise.all([first.stream.return(), second.stream.return()])
  })

  it('a client that was too slow is counted; a failure of this gateway is not', async () => {
    const { streams, counted } = setUp()
    const [slow, failed] = [streams.open(7, 0), streams.open(7, 0)]
    slow.stream.fail('slow_consumer')
    failed.stream.fail('internal')
    expect(counted).to.deep.equal({ slow_consumers: 1 })
    await Promise.all([slow.stream.return(), failed.stream.return()])
  })

  it('frames for a number that is not open are ignored', () => {
    const { streams, sent, counted } = setUp()
    streams.onRecord(7, received(RECORD.frames, { stream: 5, seq: 1, count: 1 }))
    expect([sent, counted]).to.deep.equal([[], {}])
  })

  it('a gap does not end its stream while the worker is a member', async () => {
    let checks = 0
    const isBusAway = () => ++checks % 2 === 0
    const { streams, sent, counted } = setUp({
      isBusAway,
      limits: { ...STREAM_LIMITS, askAgainMs: 1, maxAskAgainMs: 1 },
    })
    const { number, stream } = streams.open(7, 0)
    const next = stream.next()
    streams.onRecord(7, beatOf(number, 1, 0))
    await until(() => sent.length > 20, { what: '20 requests', everyMs: 1, lastSeen: () => sent.length })
    streams.fail('worker_lost', 7)
    expect(String((await next).value?.text)).to.include('worker_lost')
    expect(counted).to.deep.equal({ gaps_asked: 1, streams_lost: 1 })
    await stream.return()
  })

  it('D4.5c: an empty record with the flag of the last frame ends its stream', async () => {
    const { streams } = setUp()
    const { number, stream } = streams.open(7, 3)
    const next = stream.next()
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 4, count: 0, flags: LAST }))
    expect((await next).done).to.equal(true)
  })
})
