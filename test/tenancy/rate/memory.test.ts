import { expect } from 'chai'
import * as fc from 'fast-check'
import { MemoryRateLimiter } from '../../../shared/tenancy/rate/memory.ts'

const MINUTE = 60_000

const limiterAt = (perMinute: number, maxClients?: number) => {
  const clock = { now: 1_000 }
  const limiter = new MemoryRateLimiter({ perMinute, ...(maxClients && { maxClients }) }, () => clock.now)
  return { clock, take: (key = 'a') => limiter.take(key) }
}

describe('the sliding window in memory', () => {
  it('api.md Limits: any 60 seconds contain at most the limit, and refused requests do not count', () => {
    const gaps = fc.array(fc.double({ min: 0, max: 40_000, noNaN: true }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 5 }), (waits, limit) => {
        const { clock, take } = limiterAt(limit)
        const counted: number[] = []
        for (const wait of waits) {
          clock.now += wait
          const inWindow = counted.filter((time) => time > clock.now - MINUTE).length
          const taken = take()
          expect(taken.isAllowed).to.equal(inWindow < limit)
          if (taken.isAllowed) counted.push(clock.now)
          expect(taken.remaining).to.equal(limit - inWindow - Number(taken.isAllowed))
          expect(taken.resetSecs).to.be.within(1, 60)
        }
      }),
    )
  })

  it('D2.9: one more request is allowed after resetSecs, and not a second earlier', () => {
    const { clock, take } = limiterAt(2)
    take()
    clock.now += 10_500
    take()
    const { isAllowed, resetSecs } = take()
    expect({ isAllowed, resetSecs }).to.deep.equal({ isAllowed: false, resetSecs: 50 })
    clock.now += 49_000
    expect(take().isAllowed).to.equal(false)
    clock.now += 1_000
    expect(take().isAllowed).to.equal(true)
  })

  it('D2.9: resetSecs is at least 1', () => {
    const { clock, take } = limiterAt(1)
    take()
    clock.now += MINUTE - 1
    expect(take().resetSecs).to.equal(1)
  })

  it('clients do not share their counts', () => {
    const { take } = limiterAt(1)
    expect([take('a'), take('b'), take('a')].map(({ isAllowed }) => isAllowed)).to.deep.equal([true, true, false])
  })

  it('keeps the most recent clients up to the maximum number', () => {
    const { take } = limiterAt(1, 2)
    for (const key of ['a', 'b', 'a', 'c']) take(key)
    expect(take('a').isAllowed).to.equal(false)
    expect(take('b').isAllowed).to.equal(true)
  })

  it('api.md Limits: a full minute of requests at a high limit is counted exactly', () => {
    const { clock, take } = limiterAt(1_000)
    for (let i = 0; i < 3_000; i++) {
      clock.now += 60
      expect(take().isAllowed).to.equal(true)
    }
    expect(take().remaining).to.equal(0)
    expect(take().isAllowed).to.equal(false)
  })
})
