import { expect } from 'chai'
import { Journal } from '../../../../shared/cluster/journal/journal.ts'
import { Lease } from '../../../../shared/cluster/members/lease.ts'
import { now } from '../../../../shared/cluster/members/moment.ts'
import { Outbox } from '../../../../shared/cluster/relay/wire/outbox.ts'
import { RECORD, type ReceivedRecord, readMessage, record } from '../../../../shared/cluster/relay/wire/records.ts'
import { newBudget } from '../../../support/journal-budget.ts'
import { settled } from '../../../support/settled.ts'

function setUp(lease: Lease) {
  const sent: Pick<ReceivedRecord, 'type' | 'seq' | 'count'>[] = []
  const outbox = new Outbox({
    epoch: 1,
    publish: async (message) => {
      readMessage(message, ({ type, seq, count }) => sent.push({ type, seq, count }))
      return 1
    },
    canSendFrames: () => lease.isHeld(),
    onPublished: () => {},
    creditBytes: () => 4 * 1024 * 1024,
  })
  const journal = new Journal(newBudget(1e6))
  outbox.attach(1, journal.follow(0))
  const say = () => journal.append({ type: 'text_delta', text: 'hi' })
  return { outbox, sent, say }
}

describe('outbox behind a fence', () => {
  it('without a lease no frame and no heartbeat is sent; with the lease the frames follow', async () => {
    const lease = new Lease(60_000)
    const { outbox, sent, say } = setUp(lease)
    say()
    await settled()
    outbox.sendBeat()
    expect(sent).to.deep.equal([])
    outbox.send(record(RECORD.reply))
    await settled()
    expect(sent.map(({ type }) => type)).to.deep.equal([RECORD.reply])
    say()
    lease.renewed(now())
    outbox.resume()
    await settled()
    expect(sent.at(-1)).to.deep.equal({ type: RECORD.frames, seq: 1, count: 2 })
  })

  it('P2: a process that was suspended longer than its lease sends no frame, even before its timers run', async () => {
    const lease = new Lease(20)
    const { sent, say } = setUp(lease)
    lease.renewed(now())
    say()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
    await settled()
    expect(sent).to.deep.equal([])
  })
})
