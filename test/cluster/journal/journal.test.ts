import { expect } from 'chai'
import { CursorStream } from '../../../shared/cluster/journal/cursor-stream.ts'
import type { FrameCursor } from '../../../shared/cluster/journal/frame-stream.ts'
import { renderFrame, renderReaderFailure } from '../../../shared/cluster/journal/frames.ts'
import {
  JOURNAL_LIMITS,
  Journal,
  type JournalBudget,
  type JournalLimits,
} from '../../../shared/cluster/journal/journal.ts'
import { type AgentEvent, errorEvent } from '../../../shared/kernel/events.ts'
import { idsOf } from '../../support/broker-answers.ts'
import { newBudget } from '../../support/journal-budget.ts'

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

describe('a journal that begins with events of another process', () => {
  it('counts all bytes that it holds, also where numbers are left out', () => {
    const budget = newBudget()
    const journal = new Journal(budget)
    journal.restore(
      [1, 5, 9].map((seq) => [seq, delta('a')] as const),
      { from: 1, reserved: 100 },
    )
    expect([journal.lastSeq, budget.bytes > 0]).to.deep.equal([100, true])
    journal.drop()
    expect(budget.bytes).to.equal(0)
  })

  it('D32.7a: keeps the numbers that they had, from the first that is known on, and a run that has ended has no more', () => {
    const journal = new Journal(newBudget())
    journal.restore(
      [
        [5, delta('a')],
        [9, END],
      ],
      { from: 3, reserved: 100 },
    )
    expect(journal.follow(1).take()).to.equal(undefined)
    const cursor = journal.follow(2)
    let text = ''
    while (cursor.state === 'ready') text += String(cursor.take()?.text)
    expect([idsOf(text), cursor.state, journal.lastSeq]).to.deep.equal([[5, 9], 'ended', 9])
  })

  describe('of which some are not known', () => {
    const [NOTICE, NEW] = [delta('rest'), delta('new')]
    /** Events 2 to 3, and 5 to 7, are not known; 9 is the first one here. */
    function restored({ from = 1 } = {}): Journal {
      const journal = new Journal(newBudget())
      const events = [1, 4, 8].filter((seq) => seq >= from).map((seq) => [seq, delta(`${seq}`)] as const)
      journal.restore(events, { from, reserved: 100, notice: NOTICE })
      journal.append(NEW)
      return journal
    }
    /** The numbers of what a reader gets, that of the notice marked. */
    function numbersOf(cursor: FrameCursor): string[] {
      let text = ''
      while (cursor.state === 'ready') text += String(cursor.take()?.text)
      return [...text.matchAll(/id: (\d+)\nevent: \w+\ndata: (.*)/g)].map(([, id, data]) =>
        data === JSON.stringify({ text: 'rest' }) ? `notice ${id}` : `${id}`,
      )
    }

    it('D32.7a: a reader that lacks some gets the notice once, before the next event that is known', () => {
      const journal = restored()
      const got = [0, 1, 2, 4, 6].map((seq) => numbersOf(journal.follow(seq)))
      expect(got).to.deep.equal([
        ['1', 'notice 2', '4', '8', '101'],
        ['notice 2', '4', '8', '101'],
        ['notice 3', '4', '8', '101'],
        ['notice 5', '8', '101'],
        ['notice 7', '8', '101'],
      ])
    })

    it('D32.7a: a reader that lacks none of them gets no notice', () => {
      const journal = restored()
      expect([7, 8, 50].map((seq) => numbersOf(journal.follow(seq)))).to.deep.equal([['8', '101'], ['101'], ['101']])
    })

    it('a reader that goes back behind the notice gets it again, and one whose events are forgotten a gap', () => {
      const cursor = restored().follow(1)
      numbersOf(cursor)
      cursor.seek({ seq: 2, pieces: 0 })
      expect(numbersOf(cursor)).to.deep.equal(['4', '8', '101'])
      cursor.seek({ seq: 1, pieces: 0 })
      expect(numbersOf(cursor)).to.deep.equal(['notice 2', '4', '8', '101'])
      expect(restored({ from: 4 }).follow(1).take()).to.equal(undefined)
    })

    it('D32.7a: the notice comes also before the first event, when those from the first number on are not known', () => {
      const journal = new Journal(newBudget())
      journal.restore([[4, delta('a')]], { from: 1, reserved: 0, notice: NOTICE })
      expect(numbersOf(journal.follow(0))).to.deep.equal(['notice 1', '4'])
    })

    it('D32.7a: the notice never comes between the pieces of a large event', () => {
      const journal = new Journal(newBudget())
      journal.restore([[4, delta('x'.repeat(100_000))]], { from: 1, reserved: 0, notice: NOTICE })
      const cursor = journal.follow(1)
      cursor.seek({ seq: 1, pieces: 2 })
      expect(cursor.take()).to.include({ pieces: 3 })
    })

    it('one notice counts one number, however many are left out', () => {
      const journal = new Journal(newBudget())
      journal.restore([[70_000, delta('a')]], { from: 1, reserved: 0, notice: NOTICE })
      expect(journal.follow(3).take()).to.include({ lastSeq: 4 })
    })
  })
})

describe('frames', () => {
  it('D4.2: a frame is id, event and data in this order, then a blank line', () => {
    expect(renderFrame(7, { type: 'text_delta', text: 'a\nb' })).to.equal(
      'id: 7\nevent: text_delta\ndata: {"text":"a\\nb"}\n\n',
    )
  })

  it('D4.2: a reader’s failure is a terminal error frame under the number of the last frame delivered', () => {
    for (const [code, message] of Object.entries({
      worker_lost: 'send the request again',
      worker_draining: 'follow the run again',
      relay_unavailable: 'follow the run again',
      stream_gap: 'could not be delivered',
      slow_consumer: 'did not read the stream fast enough',
      cancelled: 'before it began',
      internal: 'internal error',
    })) {
      const frame = renderReaderFailure(12, code as Parameters<typeof renderReaderFailure>[1])
      expect(frame).to.match(/^id: 12\nevent: error\ndata: \{.*\}\n\n$/)
      expect(frame).to.include(`"code":"${code}"`).and.include(message)
    }
  })

  it('only a run that was lost with its worker can have left a session behind', () => {
    expect(renderReaderFailure(1, 'worker_lost', { isSessionKept: true })).to.include('the session is kept')
    expect(renderReaderFailure(1, 'internal', { isSessionKept: true })).to.equal(renderReaderFailure(1, 'internal'))
  })
})

describe('journal', () => {
  it('D4.5a: a reader gets the events from before and after it came, in order and without a gap', async () => {
    const journal = new Journal(newBudget())
    journal.append(delta('a'))
    const reading = readAll(journal.follow(0))
    journal.append(delta('b'))
    setImmediate(() => {
      journal.append(delta('c'))
      journal.append(END)
    })
    expect(idsOf(await reading)).to.deep.equal([1, 2, 3, 4])
  })

  it('a reader of a journal that was abandoned, because its run continues elsewhere, gets a gap at once, and so does a later one', async () => {
    const budget = newBudget()
    const journal = new Journal(budget)
    journal.append(delta('a'))
    const reader = journal.follow(1)
    const notified = new Promise<void>((resolve) => reader.subscribe(resolve))
    expect(reader.state).to.equal('waiting')
    journal.abandon()
    await notified
    expect(budget.bytes).to.equal(0)
    for (const each of [reader, journal.follow(0)]) {
      expect(each.state).to.equal('ready')
      expect(each.take()).to.equal(undefined)
      each.close()
    }
  })

  it('events of one event-loop turn are read as one chunk', async () => {
    const journal = new Journal(newBudget())
    const reader = new CursorStream(journal.follow(0))
    const first = reader.next()
    for (const text of ['a', 'b', 'c']) journal.append(delta(text))
    const { value } = await first
    expect(value).to.have.property('lastSeq', 3)
  })

  it('D4.5a: Last-Event-ID n replays from n + 1', async () => {
    const journal = new Journal(newBudget())
    for (const text of ['a', 'b', 'c']) journal.append(delta(text))
    journal.append(END)
    expect(idsOf(await readAll(journal.follow(2)))).to.deep.equal([3, 4])
  })

  it('D4.5e: a reader whose next event is no longer kept gets stream_gap at once, under the id it has', async () => {
    const journal = new Journal(newBudget(), { ...JOURNAL_LIMITS, maxEvents: 2 })
    for (const text of ['a', 'b', 'c', 'd']) journal.append(delta(text))
    const text = await readAll(journal.follow(1))
    expect(idsOf(text)).to.deep.equal([1])
    expect(text).to.include('"code":"stream_gap"')
  })

  it('a journal keeps at most maxBytes, but always the newest event', () => {
    const budget = newBudget()
    const journal = new Journal(budget, { ...JOURNAL_LIMITS, maxBytes: 200_000 })
    for (let i = 0; i < 1_500; i++) journal.append(delta('é'.repeat(100)))
    expect(journal.lastSeq).to.equal(1_500)
    expect(budget.bytes).to.be.within(100_000, 200_000)
    journal.append(delta('x'.repeat(300_000)))
    expect(idsOf(readNow(journal, 1_500))).to.deep.equal([1_501])
    journal.drop()
    expect(budget.bytes).to.equal(0)
  })

  it('when the process is over its budget a journal keeps no more than its floor', () => {
    const budget = newBudget(5, 10)
    const journal = new Journal(budget, { ...JOURNAL_LIMITS, floorBytes: 150_000 })
    for (let i = 0; i < 2_000; i++) journal.append(delta('x'.repeat(100)))
    expect(budget.bytes).to.be.within(80_000, 150_010)
  })

  it('frames that a reader has taken do not change when the journal drops them', () => {
    const journal = new Journal(newBudget(), { ...JOURNAL_LIMITS, maxEvents: 3 })
    journal.append(delta('first'))
    const { text } = journal.follow(0).take() ?? {}
    for (let i = 0; i < 1_000; i++) journal.append(delta(`later ${i}`))
    expect(String(text)).to.equal('id: 1\nevent: text_delta\ndata: {"text":"first"}\n\n')
  })

  it('the producer waits for a reader that is too far behind, and continues when the reader has caught up', async () => {
    const journal = new Journal(newBudget(), { ...JOURNAL_LIMITS, maxBehindEvents: 2 })
    const reader = new CursorStream(journal.follow(0))
    for (const text of ['a', 'b', 'c']) journal.append(delta(text))
    expect(journal.isBackpressured).to.equal(true)
    const room = journal.waitForDrain(new AbortController().signal)
    await reader.next()
    await room
    expect(journal.isBackpressured).to.equal(false)
  })

  it('the producer waits for a remote client until the client’s read position is confirmed', async () => {
    const journal = new Journal(newBudget(), { ...JOURNAL_LIMITS, maxUnconfirmedEvents: 2 })
    const cursor = journal.follow(0)
    cursor.confirmRead({ seq: 0, pieces: 0 })
    for (const text of ['a', 'b', 'c']) journal.append(delta(text))
    while (cursor.state === 'ready') cursor.take()
    expect([journal.isBackpressured, cursor.isTooFarBehind]).to.deep.equal([true, true])
    const room = journal.waitForDrain(new AbortController().signal)
    cursor.confirmRead({ seq: 1, pieces: 0 })
    await room
    expect([journal.isBackpressured, cursor.isTooFarBehind]).to.deep.equal([false, false])
  })

  it('a frame larger than the journal does not push out frames that a reader has yet to read', () => {
    const journal = new Journal(newBudget(), { ...JOURNAL_LIMITS, maxBytes: 1_000 })
    const [local, relayed] = [journal.follow(0), journal.follow(0)]
    relayed.confirmRead({ seq: 0, pieces: 0 })
    journal.append(delta('first'))
    relayed.take()
    journal.append(delta('x'.repeat(100_000)))
    expect(String(local.take()?.text)).to.include('first')
    relayed.seek({ seq: 0, pieces: 0 })
    expect(String(relayed.take()?.text)).to.include('first')
    relayed.confirmRead({ seq: 1, pieces: 0 })
    local.close()
    journal.append(delta('y'.repeat(100_000)))
    expect(journal.follow(0).take()).to.equal(undefined)
    expect(String(relayed.take()?.text)).to.include('xxx')
  })

  it('the producer does not wait for a reader that left, and not after its run was aborted', async () => {
    const journal = new Journal(newBudget(), { ...JOURNAL_LIMITS, maxBehindEvents: 0 })
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

  it('a waiting reader is released when it is closed', async () => {
    const reader = new CursorStream(new Journal(newBudget()).follow(0))
    const waiting = reader.next()
    await reader.return()
    expect(await waiting).to.deep.equal({ done: true, value: undefined })
  })

  it('tells the length of a frame, its data unless the event is large, and whether it is the last', () => {
    const journal = new Journal(newBudget())
    expect(journal.append(delta('é'))).to.deep.equal({
      bytes: Buffer.byteLength(renderFrame(1, delta('é'))),
      data: '{"text":"é"}',
      isLast: false,
    })
    expect(journal.append(delta('x'.repeat(70_000))).data).to.equal(undefined)
    expect(journal.append(END).isLast).to.equal(true)
  })

  it('appending after the terminal event throws', () => {
    const journal = new Journal(newBudget())
    journal.append(END)
    expect(() => journal.append(delta('late'))).to.throw()
  })

  it('a reader with a number ahead of the run reads the next events instead of waiting for ever', async () => {
    const journal = new Journal(newBudget())
    journal.append(delta('a'))
    const reading = readAll(journal.follow(999))
    journal.append(END)
    expect(idsOf(await reading)).to.deep.equal([2])
  })

  it('exactly maxEvents are kept; with one more the oldest is dropped', () => {
    const journal = new Journal(newBudget(), { ...JOURNAL_LIMITS, maxEvents: 2 })
    for (const text of ['a', 'b']) journal.append(delta(text))
    expect(idsOf(readNow(journal, 0))).to.deep.equal([1, 2])
    journal.append(delta('c'))
    expect(journal.follow(0).take()).to.equal(undefined)
    expect(idsOf(readNow(journal, 1))).to.deep.equal([2, 3])
  })

  /** The size of the first slab of frames, which holds several small events. */
  const BUFFER_BYTES = 2048
  const hasFirst = (budget: JournalBudget, limits: Partial<JournalLimits>) => {
    const journal = new Journal(budget, { ...JOURNAL_LIMITS, ...limits })
    for (const text of ['a', 'b']) journal.append(delta(text))
    return journal.follow(0).take() !== undefined
  }

  it('exactly maxBytes are kept; above it the oldest event is dropped', () => {
    const kept = [BUFFER_BYTES, BUFFER_BYTES - 1].map((maxBytes) => hasFirst(newBudget(), { maxBytes }))
    expect(kept).to.deep.equal([true, false])
  })

  it('a journal gives up events only when the process is over its budget and the journal over its floor', () => {
    for (const [maxBytes, floorBytes, isKept] of [
      [BUFFER_BYTES, 0, true],
      [BUFFER_BYTES - 1, BUFFER_BYTES, true],
      [BUFFER_BYTES - 1, BUFFER_BYTES - 1, false],
    ] as const) {
      expect(hasFirst(newBudget(maxBytes), { floorBytes })).to.equal(isKept)
    }
  })

  it('the budget counts what all journals keep', () => {
    const budget = newBudget()
    const journals = [new Journal(budget), new Journal(budget)] as const
    for (const journal of journals) journal.append(delta('a'))
    expect(budget.bytes).to.equal(2 * BUFFER_BYTES)
    journals[0].drop()
    expect(budget.bytes).to.equal(BUFFER_BYTES)
    journals[0].append(delta('b'))
    expect([budget.bytes, idsOf(readNow(journals[0], 1))]).to.deep.equal([2 * BUFFER_BYTES, [2]])
  })

  it('the limits let a reader that is not too far behind find its next event, even in a full process', () => {
    expect(JOURNAL_LIMITS).to.deep.equal({
      maxEvents: 4_096,
      maxBytes: 2_097_152,
      floorBytes: 262_144,
      maxBehindEvents: 1_024,
      maxBehindBytes: 49_152,
      maxUnconfirmedEvents: 3_072,
      maxUnconfirmedBytes: 32_768,
    })
  })

  it('a reader that the journal has overtaken is cut off with slow_consumer, and counts as a reader no more', async () => {
    const journal = new Journal(newBudget())
    const reader = new CursorStream(journal.follow(0))
    journal.append(delta('a'))
    await reader.next()
    journal.append(delta('b'))
    journal.drop()
    const { value } = await reader.next()
    expect(value).to.have.property('lastSeq', 1)
    expect(String(value?.text))
      .to.match(/^id: 1\n/)
      .and.include('"code":"slow_consumer"')
    expect([journal.readerCount, await reader.next()]).to.deep.equal([0, { done: true, value: undefined }])
  })

  it('a stream that has ended counts as a reader no more', async () => {
    const journal = new Journal(newBudget())
    journal.append(END)
    expect(idsOf(await readAll(journal.follow(0)))).to.deep.equal([1])
    expect(journal.readerCount).to.equal(0)
  })
})
