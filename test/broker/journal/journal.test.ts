import { expect } from 'chai'
import { CursorStream } from '../../../shared/broker/journal/cursor-stream.ts'
import { renderFrame } from '../../../shared/broker/journal/frames.ts'
import { JOURNAL_LIMITS, Journal } from '../../../shared/broker/journal/journal.ts'
import type { FrameCursor } from '../../../shared/broker/port.ts'
import { type AgentEvent, errorEvent } from '../../../shared/events.ts'

const roomy = () => ({ bytes: 0, maxBytes: 64 * 1024 * 1024 })
const delta = (text: string): AgentEvent => ({ type: 'text_delta', text })
const END = errorEvent('cancelled', 'x')

async function readAll(cursor: FrameCursor): Promise<string> {
  let text = ''
  for await (const chunk of new CursorStream(cursor)) text += chunk.text
  return text
}

function readNow(journal: Journal, seq: number): string {
  return String(journal.follow(seq).take()?.text)
}

const idsOf = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))

describe('frames', () => {
  it('D4.2: a frame is id, event and data in this order, then a blank line', () => {
    expect(renderFrame(7, { type: 'text_delta', text: 'a\nb' })).to.equal(
      'id: 7\nevent: text_delta\ndata: {"text":"a\\nb"}\n\n',
    )
  })
})

describe('journal', () => {
  it('D4.5: a reader gets what was appended before and after it came, in order and without a hole', async () => {
    const journal = new Journal(roomy())
    journal.append(delta('a'))
    const reading = readAll(journal.follow(0))
    journal.append(delta('b'))
    setImmediate(() => {
      journal.append(delta('c'))
      journal.append(END)
    })
    expect(idsOf(await reading)).to.deep.equal([1, 2, 3, 4])
  })

  it('events of one loop turn are read as one chunk', async () => {
    const journal = new Journal(roomy())
    const reader = new CursorStream(journal.follow(0))
    const first = reader.next()
    for (const text of ['a', 'b', 'c']) journal.append(delta(text))
    const { value } = await first
    expect(value).to.have.property('lastSeq', 3)
  })

  it('D4.5: Last-Event-ID n replays from n + 1', async () => {
    const journal = new Journal(roomy())
    for (const text of ['a', 'b', 'c']) journal.append(delta(text))
    journal.append(END)
    expect(idsOf(await readAll(journal.follow(2)))).to.deep.equal([3, 4])
  })

  it('D4.5: a reader whose next event is no longer kept gets stream_gap at once, under the id it has', async () => {
    const journal = new Journal(roomy(), { ...JOURNAL_LIMITS, maxEvents: 2 })
    for (const text of ['a', 'b', 'c', 'd']) journal.append(delta(text))
    const text = await readAll(journal.follow(1))
    expect(idsOf(text)).to.deep.equal([1])
    expect(text).to.include('"code":"stream_gap"')
  })

  it('keeps at most maxBytes, but always the newest event', () => {
    const budget = roomy()
    const journal = new Journal(budget, { ...JOURNAL_LIMITS, maxBytes: 200_000 })
    for (let i = 0; i < 1_500; i++) journal.append(delta('é'.repeat(100)))
    expect(journal.lastSeq).to.equal(1_500)
    expect(budget.bytes).to.be.within(100_000, 200_000)
    journal.append(delta('x'.repeat(300_000)))
    expect(idsOf(readNow(journal, 1_500))).to.deep.equal([1_501])
    journal.drop()
    expect(budget.bytes).to.equal(0)
  })

  it('in a full process a journal keeps no more than its floor', () => {
    const budget = { bytes: 10, maxBytes: 5 }
    const journal = new Journal(budget, { ...JOURNAL_LIMITS, floorBytes: 150_000 })
    for (let i = 0; i < 2_000; i++) journal.append(delta('x'.repeat(100)))
    expect(budget.bytes).to.be.within(80_000, 150_010)
  })

  it('what a reader was given stays as it was, whatever happens to the journal', () => {
    const journal = new Journal(roomy(), { ...JOURNAL_LIMITS, maxEvents: 3 })
    journal.append(delta('first'))
    const { text } = journal.follow(0).take() ?? {}
    for (let i = 0; i < 1_000; i++) journal.append(delta(`later ${i}`))
    expect(String(text)).to.equal('id: 1\nevent: text_delta\ndata: {"text":"first"}\n\n')
  })

  it('the producer waits for a reader that is far behind, and goes on when it has caught up', async () => {
    const journal = new Journal(roomy(), { ...JOURNAL_LIMITS, maxBehindEvents: 2 })
    const reader = new CursorStream(journal.follow(0))
    for (const text of ['a', 'b', 'c']) journal.append(delta(text))
    expect(journal.isBackpressured).to.equal(true)
    const room = journal.waitForDrain(new AbortController().signal)
    await reader.next()
    await room
    expect(journal.isBackpressured).to.equal(false)
  })

  it('design §7.2: what was sent on is under way until the reader confirms it: the producer waits for the word', async () => {
    const journal = new Journal(roomy(), { ...JOURNAL_LIMITS, maxUnconfirmedEvents: 2 })
    const cursor = journal.follow(0)
    cursor.confirmRead(0)
    for (const text of ['a', 'b', 'c']) journal.append(delta(text))
    while (cursor.state === 'ready') cursor.take()
    expect([journal.isBackpressured, cursor.isTooFarBehind]).to.deep.equal([true, true])
    const room = journal.waitForDrain(new AbortController().signal)
    cursor.confirmRead(1)
    await room
    expect([journal.isBackpressured, cursor.isTooFarBehind]).to.deep.equal([false, false])
  })

  it('design §7.2: a frame larger than the journal pushes out nothing that a reader is yet to get', () => {
    const journal = new Journal(roomy(), { ...JOURNAL_LIMITS, maxBytes: 1_000 })
    const [local, relayed] = [journal.follow(0), journal.follow(0)]
    relayed.confirmRead(0)
    journal.append(delta('first'))
    relayed.take()
    journal.append(delta('x'.repeat(100_000)))
    expect(String(local.take()?.text)).to.include('first')
    relayed.seek(0)
    expect(String(relayed.take()?.text)).to.include('first')
    relayed.confirmRead(1)
    local.close()
    journal.append(delta('y'.repeat(100_000)))
    expect(journal.follow(0).take()).to.equal(undefined)
    expect(String(relayed.take()?.text)).to.include('xxx')
  })

  it('the producer does not wait for a reader that left, nor when its run is aborted', async () => {
    const journal = new Journal(roomy(), { ...JOURNAL_LIMITS, maxBehindEvents: 0 })
    const reader = new CursorStream(journal.follow(0))
    journal.append(delta('a'))
    const abort = new AbortController()
    const aborted = journal.waitForDrain(abort.signal)
    abort.abort()
    await aborted
    const left = journal.waitForDrain(new AbortController().signal)
    await reader.return()
    await left
    expect(journal.readerCount).to.equal(0)
  })

  it('a reader that waits is released when it is closed from outside', async () => {
    const reader = new CursorStream(new Journal(roomy()).follow(0))
    const waiting = reader.next()
    await reader.return()
    expect(await waiting).to.deep.equal({ done: true, value: undefined })
  })

  it('design §7.1: nothing can be appended after the terminal event', () => {
    const journal = new Journal(roomy())
    journal.append(END)
    expect(() => journal.append(delta('late'))).to.throw()
  })

  it('a number ahead of the run reads on live instead of waiting for ever', async () => {
    const journal = new Journal(roomy())
    journal.append(delta('a'))
    const reading = readAll(journal.follow(999))
    journal.append(END)
    expect(idsOf(await reading)).to.deep.equal([2])
  })
})
