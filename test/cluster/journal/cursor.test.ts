import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import type { JournalCursor } from '../../../shared/cluster/journal/cursor.ts'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { JOURNAL_LIMITS, Journal, type JournalLimits } from '../../../shared/cluster/journal/journal.ts'
import { type AgentEvent, errorEvent } from '../../../shared/kernel/events.ts'
import { newBudget } from '../../support/journal-budget.ts'
import { settled } from '../../support/settled.ts'

const delta = (text: string): AgentEvent => ({ type: 'text_delta', text })
const END = errorEvent('cancelled', 'x')
const NEVER = new AbortController().signal

/** A journal that holds `count` events already. */
function journalOf(count: number, limits: Partial<JournalLimits> = {}) {
  const journal = new Journal(newBudget(1e9), { ...JOURNAL_LIMITS, ...limits })
  for (let i = 0; i < count; i++) journal.append(delta('x'))
  return journal
}

const FRAME_BYTES = renderFrame(1, delta('x')).length

const at = (seq: number, pieces = 0) => ({ seq, pieces })

describe('journal cursor', () => {
  it('its state follows the journal: ready with new frames, waiting without, ended after the last', () => {
    const journal = journalOf(1)
    const cursor = journal.follow(0)
    expect([cursor.state, cursor.seq]).to.deep.equal(['ready', 0])
    cursor.take()
    expect([cursor.state, cursor.seq]).to.deep.equal(['waiting', 1])
    journal.append(END)
    expect(cursor.state).to.equal('ready')
    cursor.take()
    expect(cursor.state).to.equal('ended')
    cursor.seek(at(1))
    expect(cursor.state).to.equal('ready')
    cursor.close()
    expect(cursor.state).to.equal('ended')
  })

  it('the listener is called once for everything that happens in one event-loop turn', async () => {
    const journal = journalOf(0)
    const cursor = journal.follow(0)
    let calls = 0
    cursor.subscribe(() => calls++)
    journal.append(delta('a'))
    journal.append(delta('b'))
    cursor.seek(at(0))
    expect(calls).to.equal(0)
    await new Promise(setImmediate)
    expect(calls).to.equal(1)
    journal.append(delta('c'))
    await new Promise(setImmediate)
    expect(calls).to.equal(2)
    cursor.confirmRead(at(1))
    await settled()
    expect(calls).to.equal(2)
  })

  it('the listener is called after seek, and after close once', async () => {
    const cursor = journalOf(1).follow(1)
    let calls = 0
    cursor.subscribe(() => calls++)
    cursor.seek(at(0))
    await new Promise(setImmediate)
    expect(calls).to.equal(1)
    cursor.close()
    await new Promise(setImmediate)
    cursor.close()
    await new Promise(setImmediate)
    expect(calls).to.equal(2)
  })

  it('a cursor without a listener is read all the same', async () => {
    const journal = journalOf(0)
    const cursor = journal.follow(0)
    journal.append(delta('a'))
    await new Promise(setImmediate)
    expect(cursor.take()).to.have.property('lastSeq', 1)
  })

  it('seek goes back, forward, and not beyond the last frame', () => {
    const cursor = journalOf(3).follow(2)
    cursor.seek(at(0))
    expect([cursor.seq, cursor.take()?.lastSeq]).to.deep.equal([0, 3])
    cursor.seek(at(2))
    expect([cursor.seq, cursor.take()?.lastSeq]).to.deep.equal([2, 3])
    cursor.seek(at(99))
    expect([cursor.seq, cursor.state]).to.deep.equal([3, 'waiting'])
  })

  it('what is taken counts as read, until a read position was confirmed', () => {
    const cursor = journalOf(4).follow(1)
    expect(cursor.readSeq).to.equal(1)
    cursor.take()
    expect(cursor.readSeq).to.equal(4)
    cursor.confirmRead(at(2))
    expect(cursor.readSeq).to.equal(2)
  })

  it('a read position neither goes back nor beyond the last frame', () => {
    const cursor = journalOf(4).follow(0)
    cursor.confirmRead(at(3))
    cursor.confirmRead(at(1))
    expect(cursor.readSeq).to.equal(3)
    cursor.confirmRead(at(99))
    expect(cursor.readSeq).to.equal(4)
  })

  it('closing twice removes the reader once', () => {
    let changes = 0
    const journal = new Journal(newBudget(1e9), JOURNAL_LIMITS, () => changes++)
    const [first] = [journal.follow(0), journal.follow(0)]
    expect([journal.readerCount, changes]).to.deep.equal([2, 2])
    first.close()
    first.close()
    expect([journal.readerCount, changes]).to.deep.equal([1, 3])
  })
})

describe('a reader’s distance', () => {
  it('of exactly maxBehindEvents is allowed; one more is too far', () => {
    const journal = journalOf(0, { maxBehindEvents: 2 })
    const cursor = journal.follow(0)
    const seen = [1, 2, 3].map(() => {
      journal.append(delta('x'))
      return [cursor.isTooFarBehind, journal.isBackpressured]
    })
    expect(seen).to.deep.equal([
      [false, false],
      [false, false],
      [true, true],
    ])
  })

  it('of exactly maxBehindBytes is allowed; one byte more is too far', () => {
    for (const [maxBehindBytes, isTooFar] of [
      [2 * FRAME_BYTES, false],
      [2 * FRAME_BYTES - 1, true],
    ] as const) {
      const journal = journalOf(0, { maxBehindBytes })
      const [before, later] = [journal.follow(0), () => journal.follow(0)]
      journal.append(delta('x'))
      journal.append(delta('x'))
      expect([before.isTooFarBehind, later().isTooFarBehind]).to.deep.equal([isTooFar, isTooFar])
    }
  })

  it('of exactly maxUnconfirmedEvents is allowed; one more is too far', () => {
    const journal = journalOf(2, { maxUnconfirmedEvents: 2 })
    const cursor = journal.follow(0)
    cursor.confirmRead(at(0))
    cursor.take()
    expect(cursor.isTooFarBehind).to.equal(false)
    journal.append(delta('x'))
    cursor.take()
    expect(cursor.isTooFarBehind).to.equal(true)
    cursor.confirmRead(at(1))
    expect(cursor.isTooFarBehind).to.equal(false)
  })

  it('of exactly maxUnconfirmedBytes is allowed; one byte more is too far', () => {
    for (const [maxUnconfirmedBytes, isTooFar] of [
      [2 * FRAME_BYTES, false],
      [2 * FRAME_BYTES - 1, true],
    ] as const) {
      const journal = journalOf(1, { maxUnconfirmedBytes })
      const cursor = journal.follow(0)
      cursor.confirmRead(at(0))
      journal.append(delta('x'))
      cursor.take()
      expect(cursor.isTooFarBehind).to.equal(isTooFar)
    }
  })

  it('without a confirmed read position only what was not taken counts', () => {
    const cursor = journalOf(3, { maxUnconfirmedEvents: 0, maxUnconfirmedBytes: 0 }).follow(0)
    expect(cursor.isTooFarBehind).to.equal(false)
    cursor.confirmRead(at(0))
    expect(cursor.isTooFarBehind).to.equal(true)
  })

  it('is measured anew after seek and take', () => {
    const journal = journalOf(3, { maxBehindBytes: 2 * FRAME_BYTES })
    const cursor = journal.follow(0)
    expect(cursor.isTooFarBehind).to.equal(true)
    cursor.seek(at(1))
    expect(cursor.isTooFarBehind).to.equal(false)
    cursor.seek(at(0))
    expect(cursor.isTooFarBehind).to.equal(true)
    cursor.take()
    expect(cursor.isTooFarBehind).to.equal(false)
    journal.append(delta('x'))
    journal.append(delta('x'))
    expect(cursor.isTooFarBehind).to.equal(false)
    journal.append(delta('x'))
    expect(cursor.isTooFarBehind).to.equal(true)
  })
})

describe('waiting for readers', () => {
  /** A wait of a producer, and whether it has ended. */
  function waiting(journal: Journal, signal: AbortSignal = NEVER) {
    const wait = { hasEnded: false, promise: Promise.resolve() }
    wait.promise = journal.waitForDrain(signal).then(() => {
      wait.hasEnded = true
    })
    return wait
  }

  it('no abort listener is left when the reader has caught up, has left or the run was aborted', async () => {
    for (const end of ['caught up', 'left', 'aborted'] as const) {
      const journal = journalOf(2, { maxBehindEvents: 1 })
      const cursor = journal.follow(0)
      const run = new AbortController()
      const wait = waiting(journal, run.signal)
      expect(getEventListeners(run.signal, 'abort'), end).to.have.length(1)
      if (end === 'caught up') cursor.take()
      if (end === 'left') cursor.close()
      if (end === 'aborted') run.abort()
      await wait.promise
      expect(getEventListeners(run.signal, 'abort'), end).to.have.length(0)
    }
  })

  it('no abort listener is added when there is nothing to wait for', async () => {
    const journal = journalOf(1, { maxBehindEvents: 1 })
    const cursor = journal.follow(0)
    const run = new AbortController()
    const notBehind = waiting(journal, run.signal)
    expect(getEventListeners(run.signal, 'abort')).to.have.length(0)
    await notBehind.promise
    cursor.seek(at(0))
    journal.append(delta('x'))
    run.abort()
    const aborted = waiting(journal, run.signal)
    expect(getEventListeners(run.signal, 'abort')).to.have.length(0)
    await aborted.promise
  })

  it('a wait goes on until the last reader that is too far behind has caught up', async () => {
    const journal = journalOf(2, { maxBehindEvents: 1 })
    const [first, second] = [journal.follow(0), journal.follow(0)]
    const wait = waiting(journal)
    first.take()
    await new Promise(setImmediate)
    expect(wait.hasEnded).to.equal(false)
    second.close()
    await wait.promise
  })

  it('a wait goes on while a confirmed read position is still too far behind', async () => {
    const journal = journalOf(3, { maxUnconfirmedEvents: 1 })
    const cursor = journal.follow(0)
    cursor.confirmRead(at(0))
    const wait = waiting(journal)
    cursor.confirmRead(at(1))
    await new Promise(setImmediate)
    expect(wait.hasEnded).to.equal(false)
    cursor.confirmRead(at(2))
    await wait.promise
  })
})

describe('the pieces of a large frame', () => {
  const FAR = { maxBehindBytes: 1e9, maxUnconfirmedBytes: 1e9 }

  /** A cursor for a remote client, before the first of two frames of eight pieces. They follow a small one, which the client has read. */
  function remoteCursor() {
    const journal = journalOf(1, FAR)
    for (let i = 0; i < 2; i++) journal.append(delta('x'.repeat(130_000)))
    const cursor = journal.follow(0)
    cursor.confirmRead(at(0))
    cursor.take()
    cursor.confirmRead(at(1))
    return { journal, cursor }
  }

  /** Takes pieces until one has to be confirmed. Returns what they are. */
  function takeAll(cursor: JournalCursor) {
    const taken: [piece: number | undefined, lastSeq: number | undefined][] = []
    while (cursor.state === 'ready') {
      const frames = cursor.take()
      taken.push([frames?.pieces, frames?.lastSeq])
    }
    return taken
  }

  const pieces = (lastSeq: number, ...numbers: number[]) => numbers.map((piece) => [piece, lastSeq])

  it('are all taken at once by a local reader, and the last one ends the frame', () => {
    const cursor = remoteCursor().journal.follow(1)
    expect(takeAll(cursor)).to.deep.equal([
      ...pieces(1, 1, 2, 3, 4, 5, 6, 7),
      [undefined, 2],
      ...pieces(2, 1, 2, 3, 4, 5, 6, 7),
      [undefined, 3],
    ])
  })

  it('go to a remote client while it has fewer than four to read; after them it makes the run wait', async () => {
    const { cursor } = remoteCursor()
    expect(takeAll(cursor)).to.deep.equal(pieces(1, 1, 2, 3, 4))
    expect([cursor.pieces, cursor.isTooFarBehind]).to.deep.equal([4, true])
    await new Promise(setImmediate)
    const notified = new Promise<void>((resolve) => cursor.subscribe(resolve))
    cursor.confirmRead(at(1, 1))
    await notified
    expect(takeAll(cursor)).to.deep.equal(pieces(1, 5))
  })

  it('count as read by the highest number that was confirmed of this frame, and of no other', () => {
    const { cursor } = remoteCursor()
    takeAll(cursor)
    cursor.confirmRead(at(0, 4))
    expect(cursor.state).to.equal('waiting')
    cursor.confirmRead(at(1, 4))
    cursor.confirmRead(at(1, 0))
    expect(takeAll(cursor)).to.deep.equal([...pieces(1, 5, 6, 7), [undefined, 2], ...pieces(2, 1, 2, 3, 4)])
    cursor.confirmRead(at(2))
    expect(takeAll(cursor)).to.deep.equal([])
  })
})
