import { expect } from 'chai'
import { JOURNAL_LIMITS, Journal } from '../../../shared/broker/journal/journal.ts'
import { Outbox } from '../../../shared/broker/relay/outbox.ts'
import { RECORD, readMessage, record } from '../../../shared/broker/relay/records.ts'

/** Each message as the types of its records; the reply to a message comes when `heard` is called. */
function setUp() {
  const messages: number[][] = []
  const replies: (() => void)[] = []
  const outbox = new Outbox({
    epoch: 1,
    publish: (message) => {
      const types: number[] = []
      readMessage(message, ({ type }) => types.push(type))
      messages.push(types)
      return new Promise((resolve) => replies.push(() => resolve(1)))
    },
    canSendFrames: () => true,
    onPublished: () => {},
  })
  const heard = async () => {
    replies.shift()?.()
    await new Promise(setImmediate)
  }
  return { outbox, messages, heard }
}

/** Time for what was written to be packed and sent. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
}

describe('outbox', () => {
  it('design §4.2: what is sent in one loop turn goes in one message, and what gathers meanwhile with the next', async () => {
    const { outbox, messages, heard } = setUp()
    outbox.send(record(RECORD.reply))
    outbox.send(record(RECORD.call))
    await turns()
    expect(messages).to.deep.equal([[RECORD.reply, RECORD.call]])
    outbox.send(record(RECORD.call))
    await turns()
    outbox.send(record(RECORD.ack))
    await turns()
    expect(messages).to.have.length(1)
    await heard()
    expect(messages.slice(1)).to.deep.equal([[RECORD.call, RECORD.ack]])
  })

  it('design §7.2: a run waits for its reader’s word, and the heartbeat asks for one that may have been lost', async () => {
    const { outbox, messages, heard } = setUp()
    const journal = new Journal({ bytes: 0, maxBytes: 1e6 }, { ...JOURNAL_LIMITS, maxUnconfirmedEvents: 1 })
    outbox.attach(1, journal.follow(0))
    for (const text of ['a', 'b']) journal.append({ type: 'text_delta', text })
    await turns()
    expect([messages, journal.isBackpressured]).to.deep.equal([[[RECORD.frames]], true])
    await heard()
    outbox.sendBeat()
    await turns()
    expect(messages.at(-1)).to.have.members([RECORD.askReadPosition, RECORD.beat])
    outbox.confirmRead(1, 2)
    expect(journal.isBackpressured).to.equal(false)
    await heard()
    outbox.sendBeat()
    await turns()
    expect(messages.at(-1)).to.deep.equal([RECORD.beat])
  })

  it('design §4.8: it is busy until the receiver has let go of its streams, who has all of them then', async () => {
    const { outbox, heard } = setUp()
    expect(outbox.isBusy).to.equal(false)
    const journal = new Journal({ bytes: 0, maxBytes: 1e6 })
    outbox.attach(1, journal.follow(0))
    journal.append({ type: 'text_delta', text: 'hi' })
    await turns()
    await heard()
    expect(outbox.isBusy).to.equal(true)
    outbox.detach(1)
    expect(outbox.isBusy).to.equal(false)
  })
})
