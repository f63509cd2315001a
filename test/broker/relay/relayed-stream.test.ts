import { expect } from 'chai'
import {
  RelayedStream,
  type RelayedStreamHooks,
  STREAM_LIMITS,
  type StreamLimits,
} from '../../../shared/broker/relay/relayed-stream.ts'

function setUp(limits: Partial<StreamLimits> = {}, after = 0) {
  const asked: number[] = []
  let closes = 0
  const reported: number[] = []
  const hooks: RelayedStreamHooks = {
    requestResend: (seq) => asked.push(seq) > 0,
    onRead: (seq) => reported.push(seq),
    onGap: () => {},
    onFailed: () => {},
    onClosed: () => closes++,
  }
  const stream = new RelayedStream(after, hooks, { ...STREAM_LIMITS, ...limits })
  const send = (seq: number, count = 1, fields: { body?: string; isLast?: boolean } = {}) =>
    stream.accept({ seq, count, body: Buffer.from(fields.body ?? `${seq}+${count} `), isLast: fields.isLast ?? false })
  const take = async () => String((await stream.next()).value?.text ?? 'END')
  return { stream, asked, reported, send, take, closes: () => closes }
}

describe('relayed stream', () => {
  it('design §4.3: what comes in order is handed on, frames of one loop turn together', async () => {
    const { send, take } = setUp()
    const first = take()
    send(1)
    send(2, 3)
    expect(await first).to.equal('1+1 2+3 ')
    send(5, 1, { isLast: true })
    expect(await take()).to.equal('5+1 ')
    expect(await take()).to.equal('END')
  })

  it('design §7.2: the worker is told how far the reader is, every 512 frames or 48 KiB, and when it asks', async () => {
    const { stream, send, take, reported } = setUp()
    send(1, 511)
    await take()
    expect(reported).to.deep.equal([])
    send(512)
    send(513)
    expect(reported).to.deep.equal([])
    await take()
    expect(reported).to.deep.equal([513])
    send(514, 1, { body: 'x'.repeat(48 * 1024) })
    await take()
    expect(reported).to.deep.equal([513, 514])
    send(515)
    stream.reportRead()
    expect(reported).to.deep.equal([513, 514, 514])
  })

  it('design §4.3: a hole is asked for once, nothing behind it is handed on, and it goes on where it was', async () => {
    const { send, take, asked } = setUp()
    send(1)
    send(3)
    send(4)
    expect(asked).to.deep.equal([1])
    send(2, 3)
    expect(await take()).to.equal('1+1 2+3 ')
  })

  it('design §4.3: what comes twice is passed over', async () => {
    const { send, take, asked } = setUp()
    send(1, 5)
    send(1, 5)
    send(4, 2)
    send(6)
    expect(await take()).to.equal('1+5 6+1 ')
    expect(asked).to.deep.equal([])
  })

  it('reliability rule 1: a heartbeat that knows of more shows a loss at the very end', () => {
    const { stream, send, asked } = setUp()
    send(1)
    stream.onBeat(1)
    expect(asked).to.deep.equal([])
    stream.onBeat(2)
    expect(asked).to.deep.equal([1])
  })

  it('T_gap: a hole that nobody fills is asked for again, and then ends the stream with stream_gap under the last id', async () => {
    const { send, take, asked } = setUp({ gapMs: 200, askAgainMs: 5 }, 7)
    send(9)
    const text = await take()
    expect(text)
      .to.match(/^id: 7\nevent: error\n/)
      .and.include('stream_gap')
    expect(await take()).to.equal('END')
    expect(asked.length).to.be.greaterThan(1)
  })

  it('design §4.4: a reader that does not read costs its bound; what was dropped is asked for once it has read', async () => {
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

  it('design §4.4: a reader that does not take its first write costs half of the bound for that, and half behind it', async () => {
    const { stream, send, take, asked } = setUp({ maxHeldBytes: 100 })
    const write = take()
    for (let seq = 1; seq <= 4; seq++) send(seq, 1, { body: 'x'.repeat(20) })
    expect(await write).to.have.length(40)
    for (let seq = 5; seq <= 9; seq++) send(seq, 1, { body: 'x'.repeat(20) })
    expect(stream.seq).to.equal(4)
    expect(await take()).to.have.length(40)
    const rest = take()
    await new Promise(setImmediate)
    expect(asked).to.deep.equal([4])
    send(5, 2, { body: 'y'.repeat(40) })
    expect(await rest).to.equal('y'.repeat(40))
  })

  it('design §4.4: a burst that a reader leaves lying is given up to the half, even when the end of the run was in it', async () => {
    const { stream, send, take, asked } = setUp({ maxHeldBytes: 100, burstMs: 5 })
    for (let seq = 1; seq <= 4; seq++) send(seq, 1, { body: 'x'.repeat(20), isLast: seq === 4 })
    expect(stream.seq).to.equal(4)
    while (stream.seq === 4) await new Promise((resolve) => setTimeout(resolve, 1))
    expect(stream.seq).to.equal(2)
    expect(await take()).to.have.length(40)
    const rest = take()
    await new Promise(setImmediate)
    expect(asked).to.deep.equal([2])
    send(3, 2, { isLast: true })
    expect(await rest).to.equal('3+2 ')
    expect(await take()).to.equal('END')
  })

  it('design §4.4: frames that wait, or that a reader has got, keep nothing of the message that they came in', async () => {
    const { stream } = setUp()
    const message = Buffer.alloc(64 * 1024)
    const waiting = stream.next()
    stream.accept({ seq: 1, count: 1, body: message.subarray(0, 10), isLast: false })
    const taken = await waiting
    stream.accept({ seq: 2, count: 1, body: message.subarray(10, 20), isLast: true })
    const waited = await stream.next()
    for (const { value } of [taken, waited]) expect(value).property('text').property('buffer').not.equal(message.buffer)
  })

  it('a frame that is larger than what a stream may cost comes through, if only by itself', async () => {
    const { send, take, asked } = setUp({ maxHeldBytes: 100 })
    send(1)
    send(2, 1, { body: 'x'.repeat(1_000) })
    send(3)
    expect(await take()).to.equal('1+1 ')
    const large = take()
    await new Promise(setImmediate)
    expect(asked).to.deep.equal([1])
    send(2, 1, { body: 'x'.repeat(1_000) })
    send(3)
    expect(await large).to.have.length(1_000)
  })

  it('design §4.4: a reader that fell behind the journal is a slow consumer', async () => {
    const { stream, send, take } = setUp({ maxHeldBytes: 1 })
    send(1)
    send(2)
    expect(await take()).to.equal('1+1 ')
    const rest = take()
    await new Promise(setImmediate)
    stream.onGone() // The worker's answer to what was asked for.
    expect(await rest).to.include('slow_consumer')
  })

  it('design §4.8: when the worker is lost the stream ends behind what was received', async () => {
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

  it('after its last frames nothing can fail a stream', async () => {
    const { stream, send, take } = setUp()
    send(1, 1, { isLast: true })
    stream.fail('worker_lost')
    stream.onBeat(9)
    expect(await take()).to.equal('1+1 ')
    expect(await take()).to.equal('END')
  })

  it('a reader that leaves is told of once, and a waiting one is released', async () => {
    const { stream, take, closes } = setUp()
    const waiting = take()
    await stream.return()
    await stream.return()
    expect(await waiting).to.equal('END')
    expect(closes()).to.equal(1)
  })
})
