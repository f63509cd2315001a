import { expect } from 'chai'
import { JOURNAL_LIMITS, Journal } from '../../../../shared/cluster/journal/journal.ts'
import type { MemberFields } from '../../../../shared/cluster/members/members.ts'
import {
  packMessage,
  RECORD,
  type ReceivedRecord,
  readMessage,
  record,
} from '../../../../shared/cluster/relay/wire/records.ts'
import { Transport } from '../../../../shared/cluster/relay/wire/transport.ts'
import { type CounterName, NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { newBudget } from '../../../support/journal-budget.ts'
import { settled } from '../../../support/settled.ts'
import { member, worker as workerMember } from '../../members/member.ts'

type Sent = { channel: string; epoch: number; type: number }

/** The transport of worker 1 over a fake bus; `receive` delivers a message on the channel it listens to. */
async function setUp({ role = 'worker', subscribers = 1 }: { role?: MemberFields['role']; subscribers?: number } = {}) {
  const lease = { isHolding: true, isHeld: () => lease.isHolding }
  const sent: Sent[] = []
  const received: [from: number, type: number][] = []
  const undelivered: number[] = []
  let bytes = 0
  const counted = new Map<CounterName, number>()
  let receive = (_message: Buffer) => {}
  const transport = new Transport(
    {
      role,
      lease,
      metrics: { ...NO_METRICS, count: (name, by = 1) => counted.set(name, (counted.get(name) ?? 0) + by) },
      bus: {
        async publish(channel, message) {
          bytes += message.length
          const records: ReceivedRecord[] = []
          const { epoch } = readMessage(message, (each) => records.push(each))
          for (const { type } of records) sent.push({ channel, epoch, type })
          return subscribers
        },
        async subscribe(_channel, onMessage) {
          receive = onMessage
        },
        unsubscribe: async () => {},
        resubscribe: async () => {},
        reconnect: () => {},
      },
    },
    {
      onRecord: (from, { type }) => received.push([from, type]),
      onUndelivered: (epoch) => undelivered.push(epoch),
    },
  )
  await transport.enter(1)
  return {
    transport,
    lease,
    sent,
    received,
    undelivered,
    counted,
    bytes: () => bytes,
    receive: (message: Buffer) => receive(message),
  }
}

describe('transport', () => {
  it('frames are sent only while the lease is held, and held-back frames are sent on resume', async () => {
    const { transport, lease, sent } = await setUp()
    lease.isHolding = false
    const journal = new Journal(newBudget(1e6))
    transport.outbox('gateway', 2).attach(1, journal.follow(0))
    journal.append({ type: 'text_delta', text: 'hi' })
    await settled()
    transport.sendBeat()
    await settled()
    expect(sent).to.deep.equal([])
    lease.isHolding = true
    transport.resume()
    await settled()
    expect(sent).to.deep.equal([{ channel: 'gw:2', epoch: 1, type: RECORD.frames }])
    transport.sendBeat()
    await settled()
    expect(sent.at(-1)).to.include({ channel: 'gw:2', type: RECORD.beat })
  })

  it('a message without a subscriber is reported, with the epoch it was sent to', async () => {
    for (const [subscribers, reported] of [
      [0, [7]],
      [1, []],
    ] as const) {
      const { transport, undelivered } = await setUp({ subscribers })
      transport.outbox('gateway', 7).send(record(RECORD.reply))
      await settled()
      expect(undelivered).to.deep.equal(reported)
    }
  })

  it('frames of a process that was evicted are dropped and counted', async () => {
    const { transport, receive, received, counted } = await setUp()
    transport.outbox('gateway', 2)
    transport.removeMember(2)
    expect(transport.receivers).to.deep.equal([])
    expect([transport.isLost(2), transport.isLost(9)]).to.deep.equal([true, false])
    const frames = record(RECORD.frames, { stream: 1, seq: 5, count: 3, body: 'x' })
    receive(packMessage(2, 0, [frames, record(RECORD.beat), { ...frames, count: 4 }]))
    expect(received).to.deep.equal([])
    receive(packMessage(9, 0, [frames]))
    expect(received).to.deep.equal([[9, RECORD.frames]])
    expect(counted.get('stale_frames_dropped')).to.equal(7)
  })

  it('pieces of large frames of a process that was evicted are dropped, and each counts as one frame', async () => {
    const { transport, receive, received, counted } = await setUp()
    transport.removeMember(2)
    const piece = record(RECORD.piece, { stream: 1, seq: 5, count: 3, body: 'x' })
    receive(packMessage(2, 0, [piece, { ...piece, count: 4 }, record(RECORD.beat)]))
    expect(received).to.deep.equal([])
    expect(counted.get('stale_frames_dropped')).to.equal(2)
  })

  it('a heartbeat is acknowledged on the channel of its sender’s role, and an unlisted sender is a gateway, or to a gateway an executor', async () => {
    const worker = await setUp()
    worker.transport.setMembers([workerMember(2), member('gateway', 3)])
    const gateway = await setUp({ role: 'gateway' })
    for (const { receive } of [worker, gateway]) {
      for (const epoch of [2, 3, 9]) receive(packMessage(epoch, 0, [record(RECORD.beat)]))
    }
    await settled()
    expect(worker.sent.map(({ channel }) => channel)).to.have.members(['wk:2', 'gw:3', 'gw:9'])
    expect(gateway.sent.map(({ channel }) => channel)).to.have.members(['ex:2', 'ex:3', 'ex:9'])
    expect(worker.sent.every(({ type }) => type === RECORD.ack)).to.equal(true)
  })

  it('acknowledgements are not acknowledged, also when so many processes send that each message is', async () => {
    const { transport, sent, receive } = await setUp()
    transport.setMembers(Array.from({ length: 1_000 }, (_, i) => workerMember(i + 1)))
    receive(packMessage(2, 0, [record(RECORD.reply, { stream: 1, body: '{}' })]))
    receive(packMessage(2, 100, [record(RECORD.ack, { seq: 50 })]))
    await transport.flush()
    expect(sent).to.deep.equal([{ channel: 'wk:2', epoch: 1, type: RECORD.ack }])
  })

  it('a sender whose bytes count from 0 again, because this process has a new epoch, is acknowledged as before', async () => {
    const { transport, sent, receive } = await setUp()
    const reply = record(RECORD.reply, { stream: 1, body: '{}' })
    receive(packMessage(2, 8 * 1024 * 1024, [reply]))
    await transport.flush()
    expect(sent.map(({ epoch, type }) => [epoch, type])).to.deep.equal([[1, RECORD.ack]])
    await transport.enter(5)
    receive(packMessage(2, 1024 * 1024, [reply]))
    await transport.flush()
    expect(sent.slice(1).map(({ epoch, type }) => [epoch, type])).to.deep.equal([[5, RECORD.ack]])
  })

  it('acknowledgements are not passed on as records', async () => {
    const { receive, received } = await setUp()
    receive(packMessage(2, 0, [record(RECORD.ack, { seq: 10 }), record(RECORD.call, { stream: 1 })]))
    expect(received).to.deep.equal([[2, RECORD.call]])
  })

  it('an acknowledgement lets the outbox to its sender go on when its credit was used up', async () => {
    const { transport, sent, receive } = await setUp()
    const journal = new Journal(newBudget(1e9))
    transport.outbox('gateway', 2).attach(1, journal.follow(0))
    for (let i = 0; i < 100; i++) {
      journal.append({ type: 'text_delta', text: 'x'.repeat(64 * 1024) })
      await settled()
    }
    const before = sent.length
    expect(before).to.be.within(60, 70) // 4 MiB in frames of 64 KiB.
    receive(packMessage(2, 0, [record(RECORD.ack, { seq: 4 * 1024 * 1024 })]))
    await settled()
    expect(sent.length).to.be.above(before)
  })

  it('an outbox is kept per receiver until it is removed or the process gets another epoch', async () => {
    const { transport, sent } = await setUp()
    const first = transport.outbox('gateway', 2)
    expect(transport.outbox('gateway', 2)).to.equal(first)
    await transport.enter(5)
    expect(transport.receivers).to.deep.equal([])
    transport.outbox('gateway', 2).send(record(RECORD.reply))
    await settled()
    expect(sent).to.deep.equal([{ channel: 'gw:2', epoch: 5, type: RECORD.reply }])
  })

  it('an outbox that was created between an eviction and the new epoch does not keep the old epoch', async () => {
    const { transport, sent } = await setUp()
    const early = transport.outbox('gateway', 2)
    await transport.enter(5)
    expect(transport.outbox('gateway', 2)).not.to.equal(early)
    transport.outbox('gateway', 2).send(record(RECORD.reply))
    await settled()
    expect(sent.map(({ epoch }) => epoch)).to.deep.equal([5])
  })

  it('flush resolves when all outboxes are idle, and after a second when one is not', async () => {
    const { transport, sent } = await setUp()
    transport.outbox('gateway', 2).send(record(RECORD.reply))
    await transport.flush()
    expect(sent).to.have.length(1)
    const journal = new Journal(newBudget(1e6))
    transport.outbox('gateway', 2).attach(1, journal.follow(0))
    const since = performance.now()
    await transport.flush()
    expect(performance.now() - since).to.be.at.least(990)
  })

  it('the senders of frames share the budget of a receiver that acknowledges nothing', async () => {
    for (const [workers, expected] of [
      [1, 4_096],
      [9, 2_667],
    ] as const) {
      const { transport, bytes } = await setUp()
      transport.setMembers([
        member('gateway', 2),
        ...Array.from({ length: workers }, (_, i) => member(i % 2 ? 'executor' : 'worker', 10 + i)),
      ])
      const journal = new Journal(newBudget(1e9), { ...JOURNAL_LIMITS, maxBytes: 1e9, maxEvents: 1e6 })
      transport.outbox('gateway', 2).attach(1, journal.follow(0))
      for (let i = 0; i < 6_000; i++) journal.append({ type: 'text_delta', text: 'x'.repeat(1_000) })
      for (let i = 0; i < 20; i++) await settled()
      expect(bytes() / 1_024).to.be.within(expected, expected + 64 + 1)
    }
  })
})
