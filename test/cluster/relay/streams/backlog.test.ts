import { expect } from 'chai'
import { Backlog } from '../../../../shared/cluster/relay/streams/backlog.ts'
import { until } from '../../../support/until.ts'

const LIMITS = { maxHeldBytes: 100, burstMs: 5 }

/** The next frames, as many as `count`. */
const next = ({ position: from }: Backlog, count: number) => ({ from, to: { seq: from.seq + count, pieces: 0 } })

function add(backlog: Backlog, bytes: number, { count = 1, isLast = false } = {}): boolean {
  return backlog.add({ ...next(backlog, count), body: Buffer.alloc(bytes, 'x'), isLast }, false)
}

/** Adds one chunk of each size, each with one frame. */
function filled(sizes: readonly number[], backlog = new Backlog(0, LIMITS)): Backlog {
  for (const bytes of sizes) add(backlog, bytes)
  return backlog
}

const takeBytes = (backlog: Backlog) => backlog.take().text.length
const stateOf = ({ position, isEmpty, hasLast, isDropping }: Backlog) => ({
  seq: position.seq,
  isEmpty,
  hasLast,
  isDropping,
})

/** Resolves when a burst that starts now has been dropped: one that started before would have been dropped too. */
async function oneBurst(): Promise<void> {
  const clock = filled([40, 40])
  await until(() => clock.isDropping, { what: 'the burst of a backlog to be dropped', everyMs: 1 })
}

describe('backlog', () => {
  it('frames are taken together, under the number of the last one', () => {
    const backlog = new Backlog(7, LIMITS)
    expect(stateOf(backlog)).to.deep.equal({ seq: 7, isEmpty: true, hasLast: false, isDropping: false })
    expect(backlog.add({ ...next(backlog, 2), body: Buffer.from('ab'), isLast: false }, false)).to.equal(true)
    expect(stateOf(backlog)).to.deep.equal({ seq: 9, isEmpty: false, hasLast: false, isDropping: false })
    backlog.add({ ...next(backlog, 1), body: Buffer.from('c'), isLast: true }, false)
    expect(backlog.take()).to.deep.equal({ text: Buffer.from('abc'), lastSeq: 10 })
    expect(stateOf(backlog)).to.deep.equal({ seq: 10, isEmpty: true, hasLast: true, isDropping: false })
  })

  it('nothing is taken of nothing, under the number of the frame before', () =>
    expect(new Backlog(7, LIMITS).take()).to.deep.equal({ text: Buffer.alloc(0), lastSeq: 7 }))

  it('frames that end inside a large one are taken with the number of its pieces', () => {
    const backlog = filled([1])
    const to = { seq: 1, pieces: 3 }
    backlog.add({ from: backlog.position, to, body: Buffer.from('y'), isLast: false }, false)
    expect(backlog.take()).to.deep.equal({ text: Buffer.from('xy'), lastSeq: 1, pieces: 3 })
  })

  it('what is taken together is in its order, and keeps no more memory than its bytes when these are 4 KiB or more', () => {
    const backlog = new Backlog(0, { ...LIMITS, maxHeldBytes: 100_000 })
    for (const [text, bytes] of Object.entries({ a: 1_024, b: 1_024, c: 2_048 }))
      backlog.add({ ...next(backlog, 1), body: Buffer.alloc(bytes, text), isLast: false }, false)
    const { text, lastSeq } = backlog.take()
    expect(String(text)).to.equal(`${'a'.repeat(1_024)}${'b'.repeat(1_024)}${'c'.repeat(2_048)}`)
    expect([lastSeq, text.buffer.byteLength]).to.deep.equal([3, 4_096])
  })

  it('one take has at most half of the limit', () => {
    const backlog = filled([25, 25, 1])
    expect(backlog.take()).to.deep.include({ lastSeq: 2 }).property('text').length(50)
    expect(backlog.take()).to.deep.include({ lastSeq: 3 }).property('text').length(1)
  })

  it('one take has at least one chunk, even when the chunk is larger than half of the limit', () => {
    const backlog = filled([60, 1])
    expect([takeBytes(backlog), takeBytes(backlog)]).to.deep.equal([60, 1])
  })

  it('a chunk is accepted while at most the limit is held, and dropped above it', () => {
    const atLimit = filled([60, 40])
    expect(add(atLimit, 1)).to.equal(true)
    expect(add(atLimit, 1)).to.equal(false)
    expect(stateOf(atLimit)).to.deep.equal({ seq: 1, isEmpty: false, hasLast: false, isDropping: true })
    expect(takeBytes(atLimit)).to.equal(60)
  })

  it('taken bytes no longer count', () => {
    const backlog = filled([50, 50, 1])
    takeBytes(backlog)
    expect(add(backlog, 50)).to.equal(true)
    expect(backlog.isDropping).to.equal(false)
  })

  it('dropping keeps at most half of the limit, and the number of the last frame kept', () => {
    const backlog = filled([25, 25, 25, 25, 1])
    expect(add(backlog, 1, { isLast: true })).to.equal(false)
    expect(stateOf(backlog)).to.deep.equal({ seq: 2, isEmpty: false, hasLast: false, isDropping: true })
    expect(takeBytes(backlog)).to.equal(50)
    backlog.reopen()
    expect(backlog.isDropping).to.equal(false)
  })

  it('a single chunk above the limit is kept, and the next one is dropped', () => {
    const backlog = filled([101])
    expect(add(backlog, 1)).to.equal(false)
    expect(stateOf(backlog)).to.deep.equal({ seq: 1, isEmpty: false, hasLast: false, isDropping: true })
    expect(takeBytes(backlog)).to.equal(101)
    expect(backlog.position.seq).to.equal(1)
  })

  it('a burst that is not taken in time is dropped, even when it held the last frame', async () => {
    const backlog = filled([40])
    add(backlog, 40, { isLast: true })
    expect(stateOf(backlog)).to.include({ seq: 2, hasLast: true })
    await until(() => backlog.isDropping, { what: 'the burst to be dropped', everyMs: 1 })
    expect(stateOf(backlog)).to.deep.equal({ seq: 1, isEmpty: false, hasLast: false, isDropping: true })
  })

  it('frames of exactly half of the limit, and a single larger chunk, are no burst', async () => {
    const backlogs = [filled([25, 25]), filled([90])]
    await oneBurst()
    expect(backlogs.map(({ isDropping }) => isDropping)).to.deep.equal([false, false])
  })

  it('taking frames ends a burst; the next frame above half of the limit starts another', async () => {
    const backlog = filled([20, 20, 20, 20, 20])
    expect(takeBytes(backlog)).to.equal(40)
    await oneBurst()
    expect(stateOf(backlog)).to.include({ seq: 5, isDropping: false })
    add(backlog, 20)
    await until(() => backlog.isDropping, { what: 'the second burst to be dropped', everyMs: 1 })
    expect(backlog.position.seq).to.equal(4)
  })

  it('a burst that was taken before its time ended is not dropped, though frames came since', async () => {
    const backlog = filled([30, 30])
    backlog.take()
    filled([10, 10], backlog)
    await oneBurst()
    expect(stateOf(backlog)).to.include({ seq: 4, isDropping: false })
  })

  it('keepAll keeps a burst until it is taken', async () => {
    const backlog = filled([40, 40])
    backlog.keepAll()
    await oneBurst()
    expect(stateOf(backlog)).to.include({ seq: 2, isDropping: false })
  })

  it('clear discards all frames and ends a burst', async () => {
    const backlog = filled([40, 40])
    backlog.clear()
    expect(backlog.isEmpty).to.equal(true)
    filled([50, 50], backlog)
    backlog.keepAll()
    expect(add(backlog, 1), 'discarded bytes still count').to.equal(true)
    backlog.clear()
    await oneBurst()
    expect(backlog.isDropping).to.equal(false)
  })

  it('a backlog that is dropping drops no more of what it holds', () => {
    const backlog = filled([60, 41])
    expect(add(backlog, 1)).to.equal(false)
    expect(backlog.position.seq).to.equal(1)
    add(backlog, 41, { isLast: true })
    expect(add(backlog, 1)).to.equal(false)
    expect(stateOf(backlog)).to.deep.equal({ seq: 2, isEmpty: false, hasLast: true, isDropping: true })
  })

  it('a body is copied unless it is taken soon; what is taken is memory of its own', () => {
    const message = Buffer.from('ab')
    const backlog = new Backlog(0, LIMITS)
    backlog.add({ ...next(backlog, 1), body: message.subarray(0, 1), isLast: false }, false)
    backlog.add({ ...next(backlog, 1), body: message.subarray(1), isLast: false }, true)
    message.fill('X')
    const { text } = backlog.take()
    message.fill('Y')
    expect(String(text)).to.equal('aX')
  })

  it('what a take leaves behind is copied, so that it keeps no message in memory', () => {
    const message = Buffer.alloc(300, 'a')
    const backlog = new Backlog(0, LIMITS)
    backlog.add({ ...next(backlog, 1), body: message.subarray(0, 40), isLast: false }, true)
    backlog.add({ ...next(backlog, 1), body: message.subarray(40, 80), isLast: false }, true)
    expect(takeBytes(backlog)).to.equal(40)
    message.fill('X')
    expect(String(backlog.take().text)).to.equal('a'.repeat(40))
  })
})
