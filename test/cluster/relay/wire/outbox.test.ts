import { expect } from 'chai'
import { JOURNAL_LIMITS, Journal, type JournalLimits } from '../../../../shared/cluster/journal/journal.ts'
import { Outbox } from '../../../../shared/cluster/relay/wire/outbox.ts'
import {
  END_OF_FRAME,
  LAST,
  RECORD,
  type ReceivedRecord,
  readMessage,
  record,
} from '../../../../shared/cluster/relay/wire/records.ts'
import { errorEvent } from '../../../../shared/kernel/events.ts'
import { newBudget } from '../../../support/journal-budget.ts'
import { settled } from '../../../support/settled.ts'
import { until } from '../../../support/until.ts'

const ROOMY = { maxMessageBytes: 256 * 1024, maxUnacknowledgedBytes: 4 * 1024 * 1024 }
type OutboxLimits = typeof ROOMY
/** The time after which a record that can wait goes alone. */
const WAITS_MS = 10

/** Collects the records of each message. A message is in flight until `publishNext` or `failNext` is called. */
function setUp(limits: Partial<OutboxLimits> = {}) {
  const { maxMessageBytes, maxUnacknowledgedBytes } = { ...ROOMY, ...limits }
  const sent: ReceivedRecord[][] = []
  const positions: number[] = []
  const published: number[] = []
  const inFlight: PromiseWithResolvers<number>[] = []
  const outbox = new Outbox({
    epoch: 9,
    publish: (message) => {
      const records: ReceivedRecord[] = []
      const { epoch, position } = readMessage(message, (each) => records.push(each))
      expect(epoch).to.equal(9)
      sent.push(records)
      positions.push(position)
      inFlight.push(Promise.withResolvers())
      return inFlight.at(-1)?.promise ?? Promise.reject()
    },
    canSendFrames: () => true,
    onPublished: (subscribers) => published.push(subscribers),
    maxMessageBytes,
    creditBytes: () => maxUnacknowledgedBytes,
  })
  const publishNext = async () => {
    inFlight.shift()?.resolve(1)
    await settled()
  }
  const failNext = async () => {
    inFlight.shift()?.reject(new Error('Redis is unreachable'))
    await settled()
  }
  const messages = () => sent.map((records) => records.map(({ type }) => type))
  return { outbox, sent, positions, published, messages, publishNext, failNext }
}

const newJournal = (limits: Partial<JournalLimits> = {}) =>
  new Journal(newBudget(1e6), { ...JOURNAL_LIMITS, ...limits })

function say(journal: Journal, ...texts: string[]): void {
  for (const text of texts) journal.append({ type: 'text_delta', text })
}

const framesOf = (records: readonly ReceivedRecord[] = []) =>
  records.map(({ stream, seq, count, flags }) => ({ stream, seq, count, flags }))

describe('outbox', () => {
  it('the reply to the call that started a run and the first events of the run go in one message', async () => {
    const { outbox, messages } = setUp()
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    outbox.send(record(RECORD.reply, { stream: 4, body: '{}' }))
    say(journal, 'a')
    await settled()
    expect(messages()).to.deep.equal([[RECORD.reply, RECORD.frames]])
  })

  it('a record that can wait goes with the next message, or alone when none follows soon', async () => {
    const { outbox, messages, publishNext } = setUp()
    outbox.sendLater(record(RECORD.detach, { stream: 1 }))
    outbox.send(record(RECORD.call, { stream: 2, body: '{}' }))
    await settled()
    expect(messages()).to.deep.equal([[RECORD.detach, RECORD.call]])
    await publishNext()
    const since = performance.now()
    outbox.sendLater(record(RECORD.detach, { stream: 2 }))
    await until(() => messages().length === 2, { what: 'the waiting record to be sent' })
    expect(performance.now() - since).to.be.at.least(WAITS_MS - 1)
    expect(messages().at(-1)).to.deep.equal([RECORD.detach])
  })

  it('records of one event-loop turn go in one message; those that come while it is in flight go in the next', async () => {
    const { outbox, messages, publishNext } = setUp()
    outbox.send(record(RECORD.reply))
    outbox.send(record(RECORD.call))
    await settled()
    expect(messages()).to.deep.equal([[RECORD.reply, RECORD.call]])
    outbox.send(record(RECORD.call))
    await settled()
    outbox.send(record(RECORD.ack))
    await settled()
    expect(messages()).to.have.length(1)
    await publishNext()
    expect(messages().slice(1)).to.deep.equal([[RECORD.call, RECORD.ack]])
  })

  it('a message carries the bytes sent so far, and the number of its subscribers is reported', async () => {
    const { outbox, positions, published, publishNext } = setUp()
    outbox.send(record(RECORD.reply, { body: 'four' }))
    await settled()
    expect([positions, published]).to.deep.equal([[13 + 16 + 4], []])
    await publishNext()
    outbox.send(record(RECORD.reply))
    await settled()
    expect([positions, published]).to.deep.equal([[33, 33 + 13 + 16], [1]])
  })

  it('a run waits for its client’s read position, and the heartbeat asks for a report that may have been lost', async () => {
    const { outbox, sent, messages, publishNext } = setUp()
    const journal = newJournal({ maxUnconfirmedEvents: 1 })
    outbox.attach(5, journal.follow(0))
    say(journal, 'a', 'b')
    await settled()
    expect([messages(), journal.isBackpressured]).to.deep.equal([[[RECORD.frames]], true])
    await publishNext()
    outbox.sendBeat()
    await settled()
    expect(messages().at(-1)).to.have.members([RECORD.askReadPosition, RECORD.beat])
    expect(sent.at(-1)?.find(({ type }) => type === RECORD.askReadPosition)).to.have.property('stream', 5)
    outbox.confirmRead(5, { seq: 2, pieces: 0 })
    expect(journal.isBackpressured).to.equal(false)
    await publishNext()
    outbox.sendBeat()
    await settled()
    expect(messages().at(-1)).to.deep.equal([RECORD.beat])
  })

  it('a new run is accepted once, with the first read position, for which the heartbeat asks until then', async () => {
    const { outbox, messages, publishNext } = setUp()
    let accepted = 0
    outbox.attach(1, newJournal().follow(0), () => accepted++)
    outbox.sendBeat()
    await settled()
    await publishNext()
    expect(accepted).to.equal(0)
    for (let reports = 0; reports < 2; reports++) outbox.confirmRead(1, { seq: 0, pieces: 0 })
    outbox.sendBeat()
    await settled()
    expect([accepted, messages()]).to.deep.equal([1, [[RECORD.askReadPosition, RECORD.beat], [RECORD.beat]]])
  })

  it('a new run whose stream is detached first is not accepted by a later report under its number', () => {
    const { outbox } = setUp()
    let accepted = 0
    outbox.attach(1, newJournal().follow(0), () => accepted++)
    outbox.detach(1)
    outbox.attach(1, newJournal().follow(0))
    outbox.confirmRead(1, { seq: 0, pieces: 0 })
    expect(accepted).to.equal(0)
  })

  it('a large frame goes in pieces with their numbers, the last marked, and not faster than its client reads', async () => {
    const { outbox, sent, publishNext } = setUp()
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    say(journal, 'x'.repeat(66_000))
    journal.append(errorEvent('cancelled', 'x'))
    await settled()
    outbox.confirmRead(1, { seq: 0, pieces: 4 })
    await settled()
    await publishNext()
    const piece = (count: number, flags = 0) => ({ type: RECORD.piece, stream: 1, seq: 1, count, flags })
    const places = sent.map((records) => records.map(({ type }, i) => ({ type, ...framesOf(records)[i] })))
    expect(places).to.deep.equal([
      [0, 1, 2, 3].map((count) => piece(count)),
      [piece(4, END_OF_FRAME), { type: RECORD.frames, stream: 1, seq: 2, count: 1, flags: LAST }],
    ])
  })

  it('it is busy until the receiver has detached its streams', async () => {
    const { outbox, publishNext } = setUp()
    expect(outbox.isBusy).to.equal(false)
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    say(journal, 'hi')
    await settled()
    await publishNext()
    expect(outbox.isBusy).to.equal(true)
    outbox.detach(1)
    expect(outbox.isBusy).to.equal(false)
  })

  it('it is busy while a record waits and while a message is in flight', async () => {
    const { outbox, publishNext } = setUp()
    outbox.send(record(RECORD.reply))
    expect(outbox.isBusy).to.equal(true)
    await settled()
    expect(outbox.isBusy).to.equal(true)
    await publishNext()
    expect(outbox.isBusy).to.equal(false)
  })

  it('frames carry their stream, first number and count; the last ones of a run are marked', async () => {
    const { outbox, sent, publishNext } = setUp()
    const journal = newJournal()
    say(journal, 'a', 'b', 'c')
    outbox.attach(4, journal.follow(1))
    await settled()
    say(journal, 'd')
    journal.append(errorEvent('cancelled', 'x'))
    await settled()
    await publishNext()
    expect(sent.map(framesOf)).to.deep.equal([
      [{ stream: 4, seq: 2, count: 2, flags: 0 }],
      [{ stream: 4, seq: 4, count: 2, flags: LAST }],
    ])
    expect(String(sent[0]?.[0]?.body)).to.match(/^id: 2\n[^]*\n\nid: 3\n/)
  })

  it('D4.5c: an ended run that is followed from its last frame sends its end, and repeats it with each heartbeat', async () => {
    const { outbox, sent, messages, publishNext } = setUp()
    const journal = newJournal()
    journal.append(errorEvent('cancelled', 'x'))
    outbox.attach(4, journal.follow(1))
    await settled()
    expect(sent.map(framesOf)).to.deep.equal([[{ stream: 4, seq: 2, count: 0, flags: LAST }]])
    await publishNext()
    outbox.sendBeat()
    await settled()
    expect(messages().at(-1)).to.deep.equal([RECORD.beat, RECORD.frames])
    await publishNext()
    outbox.detach(4)
    outbox.sendBeat()
    await settled()
    expect(messages()).to.have.length(2)
  })

  it('records go ahead of frames in a message', async () => {
    const { outbox, messages, publishNext } = setUp()
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    outbox.send(record(RECORD.call))
    await settled()
    say(journal, 'a')
    await settled()
    outbox.send(record(RECORD.reply))
    await settled()
    await publishNext()
    expect(messages()).to.deep.equal([[RECORD.call], [RECORD.reply, RECORD.frames]])
  })

  it('a message that is full takes no more frames; the other streams come next', async () => {
    const { outbox, sent, publishNext } = setUp({ maxMessageBytes: 60_000 })
    const journals = [newJournal(), newJournal()]
    outbox.send(record(RECORD.reply))
    await settled()
    for (const journal of journals) {
      // Two frames that do not fit into one slab, so each is taken by itself.
      say(journal, 'x'.repeat(60_000), 'y'.repeat(60_000))
    }
    journals.forEach((journal, i) => outbox.attach(i + 1, journal.follow(0)))
    for (let i = 0; i < 4; i++) await publishNext()
    expect(sent.slice(1).map((records) => records.map(({ stream, seq }) => [stream, seq]))).to.deep.equal([
      [[1, 1]],
      [[2, 1]],
      [[1, 2]],
      [[2, 2]],
    ])
  })

  it('a message of exactly the limit takes no more frames; one byte below the limit it takes one more chunk', async () => {
    for (const [maxMessageBytes, streams] of [
      [116, 0],
      [117, 1],
    ] as const) {
      const { outbox, sent, publishNext } = setUp({ maxMessageBytes })
      const journal = newJournal()
      outbox.send(record(RECORD.call))
      await settled()
      say(journal, 'a')
      outbox.attach(1, journal.follow(0))
      outbox.send(record(RECORD.reply, { body: 'x'.repeat(100) }))
      await publishNext()
      expect(sent[1]?.filter(({ type }) => type === RECORD.frames)).to.have.length(streams)
    }
  })

  it('without credit no frames are sent; they follow when the receiver acknowledges', async () => {
    const { outbox, messages, positions, publishNext } = setUp({ maxUnacknowledgedBytes: 29 })
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    outbox.send(record(RECORD.call))
    await settled()
    await publishNext()
    expect(positions).to.deep.equal([29])
    say(journal, 'a') // Exactly the credit is used: frames may still be sent.
    await settled()
    await publishNext()
    say(journal, 'b') // More than the credit is used.
    await settled()
    outbox.send(record(RECORD.reply))
    await settled()
    await publishNext()
    expect(messages()).to.deep.equal([[RECORD.call], [RECORD.frames], [RECORD.reply]])
    outbox.acknowledge(positions[2] ?? 0)
    await settled()
    expect(messages().at(-1)).to.deep.equal([RECORD.frames])
  })

  it('records of the message itself use credit too', async () => {
    const { outbox, messages, publishNext } = setUp({ maxUnacknowledgedBytes: 43 })
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    outbox.send(record(RECORD.call))
    await settled()
    say(journal, 'a')
    await settled()
    outbox.send(record(RECORD.reply))
    await publishNext()
    expect(messages()).to.deep.equal([[RECORD.call], [RECORD.reply]])
  })

  it('an older acknowledgement takes no credit away', async () => {
    const { outbox, messages, positions, publishNext } = setUp({ maxUnacknowledgedBytes: 0 })
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    outbox.send(record(RECORD.call))
    await settled()
    await publishNext()
    outbox.acknowledge(positions[0] ?? 0)
    outbox.acknowledge(1)
    say(journal, 'a')
    await settled()
    expect(messages()).to.deep.equal([[RECORD.call], [RECORD.frames]])
  })

  it('frames are sent again from where the receiver asks', async () => {
    const { outbox, sent, publishNext } = setUp()
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    say(journal, 'a', 'b', 'c')
    await settled()
    await publishNext()
    outbox.resend(1, { seq: 1, pieces: 0 })
    await settled()
    expect(framesOf(sent[1])).to.deep.equal([{ stream: 1, seq: 2, count: 2, flags: 0 }])
  })

  it('a receiver that asks for frames of a stream that is not attached gets gap', async () => {
    const { outbox, sent } = setUp()
    outbox.resend(7, { seq: 3, pieces: 0 })
    await settled()
    expect(sent[0]?.map(({ type, stream }) => ({ type, stream }))).to.deep.equal([{ type: RECORD.gap, stream: 7 }])
  })

  it('a stream whose next frame is no longer kept gets gap, and is detached', async () => {
    const { outbox, sent } = setUp()
    const journal = newJournal()
    say(journal, 'a')
    journal.drop()
    outbox.attach(7, journal.follow(0))
    await settled()
    expect(sent[0]?.map(({ type, stream }) => ({ type, stream }))).to.deep.equal([{ type: RECORD.gap, stream: 7 }])
    expect([outbox.streamCount, journal.readerCount]).to.deep.equal([0, 0])
  })

  it('detaching closes the cursor, and what it had waiting is not sent', async () => {
    const { outbox, sent, publishNext } = setUp()
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    outbox.send(record(RECORD.call))
    await settled()
    say(journal, 'a')
    await settled()
    outbox.detach(1)
    outbox.detach(1)
    expect([outbox.streamCount, journal.readerCount]).to.deep.equal([0, 0])
    await publishNext()
    expect(sent).to.have.length(1)
  })

  it('attaching a number again closes the cursor that had it', () => {
    const { outbox } = setUp()
    const [old, next] = [newJournal(), newJournal()]
    outbox.attach(1, old.follow(0))
    outbox.attach(1, next.follow(0))
    expect([old.readerCount, next.readerCount, outbox.streamCount]).to.deep.equal([0, 1, 1])
  })

  it('closing detaches all streams and discards the records that wait', async () => {
    const { outbox, sent } = setUp()
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    outbox.attach(2, journal.follow(0))
    outbox.send(record(RECORD.call))
    outbox.close()
    await settled()
    expect([journal.readerCount, outbox.streamCount, sent, outbox.isBusy]).to.deep.equal([0, 0, [], false])
  })

  it('the heartbeat names each stream and the last frame that was packed', async () => {
    const { outbox, sent, publishNext } = setUp()
    const journals = [newJournal(), newJournal()]
    journals.forEach((journal, i) => outbox.attach(i + 8, journal.follow(0)))
    say(journals[1] as Journal, 'a', 'b')
    await settled()
    outbox.sendBeat()
    await publishNext()
    const body = sent[1]?.[0]?.body ?? Buffer.alloc(0)
    expect(Array.from({ length: body.length / 4 }, (_, i) => body.readUInt32LE(i * 4))).to.deep.equal([
      8, 0, 0, 9, 2, 0,
    ])
  })

  it('without streams there is no heartbeat', async () => {
    const { outbox, sent } = setUp()
    outbox.sendBeat()
    await settled()
    expect(sent).to.deep.equal([])
  })

  it('after a failed publish the next heartbeat sends what has come since', async () => {
    const { outbox, messages, published, failNext } = setUp()
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    say(journal, 'a')
    await settled()
    say(journal, 'b')
    await settled()
    await failNext()
    expect([messages(), published]).to.deep.equal([[[RECORD.frames]], []])
    outbox.sendBeat()
    await settled()
    expect(messages().slice(1)).to.deep.equal([[RECORD.beat, RECORD.frames]])
  })

  it('a record whose number does not fit into a message is dropped with its message, and the next message goes', async () => {
    const { outbox, sent, messages, publishNext } = setUp()
    const journal = newJournal()
    outbox.attach(1, journal.follow(0))
    say(journal, 'a')
    outbox.send(record(RECORD.resend, { stream: 1, seq: 2 ** 32 }))
    await settled()
    outbox.send(record(RECORD.call))
    await settled()
    expect(messages()).to.deep.equal([[RECORD.call]])
    await publishNext()
    outbox.resend(1, { seq: 0, pieces: 0 })
    await settled()
    expect(framesOf(sent.at(-1))).to.deep.equal([{ stream: 1, seq: 1, count: 1, flags: 0 }])
  })

  it('resume sends what waits', async () => {
    const { outbox, messages, failNext } = setUp()
    outbox.send(record(RECORD.call))
    await settled()
    outbox.send(record(RECORD.reply))
    await settled()
    await failNext()
    expect(messages()).to.have.length(1)
    outbox.resume()
    expect(messages().slice(1)).to.deep.equal([[RECORD.reply]])
  })

  it('a read position of a stream that is not attached is ignored', () => {
    const { outbox } = setUp()
    outbox.confirmRead(7, { seq: 1, pieces: 0 })
    expect(outbox.isBusy).to.equal(false)
  })
})
