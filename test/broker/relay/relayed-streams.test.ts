import { expect } from 'chai'
import { RECORD, type ReceivedRecord, record, type WireRecord } from '../../../shared/broker/relay/records.ts'
import { RelayedStreams } from '../../../shared/broker/relay/relayed-streams.ts'
import { type CounterName, NO_METRICS } from '../../../shared/metrics.ts'

function setUp() {
  const sent: [epoch: number, type: number, stream: number, seq: number][] = []
  const counted: Partial<Record<CounterName, number>> = {}
  const streams = new RelayedStreams({
    send: (epoch, { type, stream, seq }) => sent.push([epoch, type, stream, seq]),
    isAlive: (epoch) => epoch !== 666,
    isRedisUnreachable: () => false,
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

function beatOf(stream: number, seq: number): ReceivedRecord {
  const body = Buffer.alloc(8)
  body.writeUInt32LE(stream, 0)
  body.writeUInt32LE(seq, 4)
  return { ...received(RECORD.beat, {}), body }
}

describe('the streams of a gateway', () => {
  it('design §4.6: frames reach a stream from its own worker only', async () => {
    const { streams, counted } = setUp()
    const { number, stream } = streams.open(7, 0)
    streams.onRecord(8, received(RECORD.frames, { stream: number, seq: 1, count: 5 }))
    expect(stream.seq).to.equal(0)
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 1, count: 5 }))
    expect(stream.seq).to.equal(5)
    expect(counted).to.deep.equal({ frames_relayed: 5 })
    await stream.return()
  })

  it('reliability rule 15: a hole is counted when it is asked for, and when it is closed', async () => {
    const { streams, counted, sent } = setUp()
    const { number, stream } = streams.open(7, 0)
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 2, count: 1 }))
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 3, count: 1 }))
    expect(sent).to.deep.equal([[7, RECORD.resend, number, 0]])
    expect(counted).to.deep.equal({ gaps_asked: 1 })
    streams.onRecord(7, received(RECORD.frames, { stream: number, seq: 1, count: 3 }))
    expect(counted).to.deep.equal({ gaps_asked: 1, gaps_repaired: 1, frames_relayed: 3 })
    streams.onRecord(7, beatOf(number, 4))
    streams.onRecord(7, received(RECORD.gap, { stream: number }))
    expect(counted).to.include({ gaps_asked: 2, gaps_repaired: 1, gaps_lost: 1 })
    await stream.return()
  })

  it('reliability rule 15: streams of a lost worker, or of a lost relay, are counted; a drained one is not lost', async () => {
    const { streams, counted } = setUp()
    const opened = [7, 7, 8, 9].map((epoch) => streams.open(epoch, 0))
    opened[3]?.stream.fail('worker_draining')
    streams.fail('worker_lost', 7)
    expect(counted).to.deep.equal({ streams_lost: 2 })
    streams.fail('relay_unavailable')
    expect(counted).to.deep.equal({ streams_lost: 3 })
    for (const { stream } of opened) await stream.return()
  })

  it('a stream that is left is told to its worker, unless that is gone', async () => {
    const { streams, sent } = setUp()
    const [living, dead] = [streams.open(7, 0), streams.open(666, 0)]
    await Promise.all([living.stream.return(), dead.stream.return()])
    expect(sent).to.deep.equal([[7, RECORD.detach, living.number, 0]])
    expect(streams.size).to.equal(0)
  })

  it('D4.5: a stream that was left is left, even if the word of it was lost', async () => {
    const { streams, sent } = setUp()
    const { number, stream } = streams.open(7, 0)
    streams.onRecord(7, beatOf(number, 0))
    await stream.return()
    sent.length = 0
    streams.onRecord(7, beatOf(number, 0))
    expect(sent).to.deep.equal([[7, RECORD.detach, number, 0]])
  })

  it('T_drain: the end of all streams is waited for, and no longer than it may take', async () => {
    const { streams } = setUp()
    await streams.ended(60_000)
    const [first, second] = [streams.open(7, 0), streams.open(7, 0)]
    const ended = streams.ended(60_000)
    await first.stream.return()
    await second.stream.return()
    await ended
    streams.open(7, 0)
    await streams.ended(10)
    expect(streams.size).to.equal(1)
  })
})
