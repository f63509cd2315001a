import { expect } from 'chai'
import { RELAY_LIMITS, RelayedStream, type RelayLimits } from '../../shared/broker/relayed-stream.ts'

function setUp(limits: Partial<RelayLimits> = {}, after = 0) {
  const asked: number[] = []
  let closes = 0
  const hooks = { resend: (seq: number) => asked.push(seq) > 0, closed: () => closes++ }
  const stream = new RelayedStream(after, hooks, { ...RELAY_LIMITS, ...limits })
  const send = (seq: number, count = 1, fields: { body?: string; isLast?: boolean } = {}) =>
    stream.accept({ seq, count, body: Buffer.from(fields.body ?? `${seq}+${count} `), isLast: fields.isLast ?? false })
  const take = async () => String((await stream.next()).value?.text ?? 'END')
  return { stream, asked, send, take, closes: () => closes }
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
    stream.announced(1)
    expect(asked).to.deep.equal([])
    stream.announced(2)
    expect(asked).to.deep.equal([1])
  })

  it('T_gap: a hole that nobody fills is asked for again, and then ends the stream with stream_gap under the last id', async () => {
    const { send, take, asked } = setUp({ gapMs: 15, askAgainMs: 5 }, 7)
    send(9)
    const text = await take()
    expect(text)
      .to.match(/^id: 7\nevent: error\n/)
      .and.include('stream_gap')
    expect(await take()).to.equal('END')
    expect(asked.length).to.be.greaterThan(1)
  })

  it('design §4.4: a reader that does not read costs its bound; what was dropped is asked for once it has read', async () => {
    const { send, take, asked } = setUp({ maxPendingBytes: 100 })
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

  it('design §4.4: a reader that fell behind the journal is a slow consumer', async () => {
    const { stream, send, take } = setUp({ maxPendingBytes: 1 })
    send(1)
    send(2)
    stream.gone()
    expect(await take()).to.equal('1+1 ')
    expect(await take()).to.include('slow_consumer')
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
    stream.announced(9)
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
