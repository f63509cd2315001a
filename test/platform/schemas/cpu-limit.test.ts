import { expect } from 'chai'
import { CpuLimit } from '../../../shared/platform/schemas/cpu-limit.ts'
import { settled } from '../../support/settled.ts'

/** A thread that answers with these CPU times, one after the other, and then with the last one again. */
function threadOf(...answers: readonly (number | Promise<number>)[]) {
  const thread = {
    reads: 0,
    cpuMs: async () => answers[Math.min(thread.reads++, answers.length - 1)] as number,
  }
  return thread
}

/** A limit, and the time on the clock at which it has expired. */
function watch(thread: { cpuMs(): Promise<number> }, isLong = false) {
  const { promise, resolve } = Promise.withResolvers<number>()
  const seen = { expired: 0 }
  const onExpired = () => {
    seen.expired++
    resolve(limit.elapsedMs)
  }
  const limit = new CpuLimit(thread, { isLong, onExpired })
  return { limit, expired: promise, seen }
}

/** Timers may be early by a millisecond or two. */
const EARLY_MS = 5

describe('the limit of the CPU time of a task', () => {
  it('is kept although the first 10 ms, which count as used, are not read', async () => {
    const thread = threadOf(500, 550)
    const { limit, expired } = watch(thread)
    limit.set(60)
    expect([thread.reads, await limit.usedMs()]).to.deep.equal([0, undefined])
    expect(await expired).to.be.at.least(60 - EARLY_MS)
    expect(await limit.usedMs()).to.be.closeTo(60, 1)
    limit.stop()
  })

  it('is read from the start of a long task, and of one with a short limit', () => {
    const reads = [true, false].map((isLong) => {
      const thread = threadOf(0)
      watch(thread, isLong)
      return thread.reads
    })
    const withLimit = [39, 40].map((ms) => {
      const thread = threadOf(0)
      const { limit } = watch(thread)
      limit.set(ms)
      limit.stop()
      return thread.reads
    })
    expect([reads, withLimit]).to.deep.equal([
      [1, 0],
      [1, 0],
    ])
  })

  it('a task that did not get the CPU has more time on the clock: the rest of its limit', async () => {
    const thread = threadOf(100, 110, 148)
    const { limit, expired } = watch(thread, true)
    limit.set(60)
    expect(await expired).to.be.at.least(60 + 50 - EARLY_MS)
    expect(thread.reads).to.equal(3)
  })

  it('that is at most ten times the limit', async () => {
    const thread = threadOf(0)
    const { limit, expired } = watch(thread)
    limit.set(20)
    expect(await expired).to.be.at.least(10 * 20)
    expect(thread.reads).to.be.at.most(20)
  })

  it('counts from the start also when it is replaced', async () => {
    const earlier = watch(threadOf(0, 1_000))
    earlier.limit.set(60_000)
    earlier.limit.set(20)
    expect(await earlier.expired).to.be.within(20 - EARLY_MS, 10_000)
    const later = watch(threadOf(0, 1_000))
    later.limit.set(10)
    later.limit.set(50)
    expect(await later.expired).to.be.at.least(50 - EARLY_MS)
    expect([earlier.seen, later.seen]).to.deep.equal([{ expired: 1 }, { expired: 1 }])
  })

  it('of a thread that has ended is its time on the clock', async () => {
    const thread = { cpuMs: () => Promise.reject(new Error('the thread has ended')) }
    const { limit, expired } = watch(thread)
    limit.set(20)
    expect(await expired).to.be.at.least(20 - EARLY_MS)
    expect(await limit.usedMs()).to.equal(undefined)
  })

  it('does not expire after it was stopped, also when the CPU time was being read then', async () => {
    const answer = Promise.withResolvers<number>()
    const isRead = Promise.withResolvers<void>()
    let reads = 0
    const cpuMs = () => {
      if (reads++ === 0) return Promise.resolve(0)
      isRead.resolve()
      return answer.promise
    }
    const [early, reading] = [watch(threadOf(0, 1_000)), watch({ cpuMs })]
    for (const { limit } of [early, reading]) limit.set(20)
    early.limit.stop()
    await isRead.promise
    reading.limit.stop()
    answer.resolve(1_000)
    expect(await reading.limit.usedMs()).to.be.at.least(1_000)
    await settled()
    expect([early.seen, reading.seen]).to.deep.equal([{ expired: 0 }, { expired: 0 }])
  })
})
