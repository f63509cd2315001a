import { expect } from 'chai'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { JOURNAL_LIMITS, Journal } from '../../../shared/cluster/journal/journal.ts'
import { STREAM_LIMITS } from '../../../shared/cluster/relay/streams/relayed-stream.ts'
import { RelayedStreams } from '../../../shared/cluster/relay/streams/relayed-streams.ts'
import { Outbox } from '../../../shared/cluster/relay/wire/outbox.ts'
import { RECORD, readMessage } from '../../../shared/cluster/relay/wire/records.ts'
import { errorEvent, type RunEvent } from '../../../shared/kernel/events.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import { newBudget } from '../../support/journal-budget.ts'
import { settled } from '../../support/settled.ts'

const EVENTS: RunEvent[] = [
  { type: 'text_delta', text: 'short' },
  { type: 'text', text: '0123456789é"\n'.repeat(30_000) },
  { type: 'text_delta', text: 'x'.repeat(60_000) },
  { type: 'thinking', text: '€😀'.repeat(50_000) },
  { type: 'text', text: 'y'.repeat(70_000) },
  errorEvent('cancelled', 'x'),
]
const FRAMES = EVENTS.map((event, i) => renderFrame(i + 1, event)).join('')

/** A worker and a gateway whose messages go through `loses`, with a heartbeat each few milliseconds. */
function setUp(loses: (message: number) => boolean) {
  const journal = new Journal(newBudget(1e9), JOURNAL_LIMITS)
  const resends: number[] = []
  let messages = 0
  const outbox: Outbox = new Outbox({
    epoch: 7,
    publish: async (message) => {
      if (loses(++messages)) return 1
      readMessage(message, (received) => streams.onRecord(7, received))
      return 1
    },
    canSendFrames: () => true,
    onPublished: () => {},
    creditBytes: () => 1e9,
  })
  const streams = new RelayedStreams({
    send: (_epoch, { type, stream, seq, count: pieces }) => {
      if (type === RECORD.resend) resends.push(pieces)
      if (type === RECORD.resend) outbox.resend(stream, { seq, pieces })
      if (type === RECORD.readPosition) outbox.confirmRead(stream, { seq, pieces })
    },
    sendLater: (_epoch, { stream }) => outbox.detach(stream),
    isAlive: () => true,
    isBusAway: () => false,
    metrics: NO_METRICS,
    limits: { ...STREAM_LIMITS, askAgainMs: 2 },
  })
  const { number, stream } = streams.open(7, 0)
  outbox.attach(number, journal.follow(0))
  const beats = setInterval(() => outbox.sendBeat(), 3)
  return { journal, stream, resends, messages: () => messages, stop: () => clearInterval(beats) }
}

async function read({ journal, stream, stop }: ReturnType<typeof setUp>): Promise<string> {
  for (const event of EVENTS) journal.append(event)
  const chunks: Uint8Array[] = []
  let lastSeq = 0
  for await (const frames of stream) {
    expect(frames.failure).to.equal(undefined)
    expect(frames.text.length).to.be.at.most(200_000)
    chunks.push(Buffer.from(frames.text))
    lastSeq = frames.lastSeq
  }
  stop()
  expect(lastSeq).to.equal(EVENTS.length)
  return Buffer.concat(chunks).toString()
}

describe('large events over the relay', () => {
  it('a large event goes in pieces, and arrives as it was rendered', async () => {
    const relay = setUp(() => false)
    expect((await read(relay)) === FRAMES).to.equal(true)
    expect(relay.messages()).to.be.greaterThan(8)
  })

  for (let nth = 2; nth <= 5; nth++) {
    it(`nothing is lost, repeated or reordered when each message in ${nth} is lost`, async () => {
      const relay = setUp((message) => message % nth === 0)
      expect((await read(relay)) === FRAMES).to.equal(true)
    })
  }

  it('pieces that arrived are not asked for again', async () => {
    const relay = setUp((message) => message % 2 === 0)
    await read(relay)
    expect(relay.resends.some((pieces) => pieces > 0)).to.equal(true)
  })

  it('a client that does not read gets at most four pieces of a large event, and the rest when it reads on', async () => {
    const relay = setUp(() => false)
    for (const event of EVENTS) relay.journal.append(event)
    const first = await relay.stream.next()
    const sent = relay.messages()
    await settled()
    expect(relay.stream.seq).to.equal(1)
    expect(relay.journal.isBackpressured).to.equal(true)
    expect(String(first.value?.text)).to.satisfy((text: string) => FRAMES.startsWith(text))
    expect(relay.messages() - sent).to.be.lessThan(10)
    relay.stop()
    await relay.stream.return()
  })
})
