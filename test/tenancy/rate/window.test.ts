import { expect } from 'chai'
import { takenOf } from '../../../shared/tenancy/rate/window.ts'

const taken = (count: number, oldestMs: number, windowMs?: number) =>
  takenOf({ isAllowed: true, limit: 10, count, oldestMs, ...(windowMs !== undefined && { windowMs }) })

describe('the numbers of the RateLimit headers', () => {
  for (const [count, remaining] of [
    [1, 9],
    [9, 1],
    [10, 0],
    [11, 0],
  ] as const) {
    it(`D2.9: after ${count} of 10 requests ${remaining} remain`, () =>
      expect(taken(count, 0).remaining).to.equal(remaining))
  }

  for (const [oldestMs, resetSecs] of [
    [0, 60],
    [1, 60],
    [999, 60],
    [1_000, 59],
    [58_999, 2],
    [59_000, 1],
    [59_999, 1],
    [60_000, 1],
    [70_000, 1],
  ] as const) {
    it(`D2.9: when the oldest request is ${oldestMs} ms old, the next one leaves the window within ${resetSecs} s`, () =>
      expect(taken(1, oldestMs).resetSecs).to.equal(resetSecs))
  }

  it('a window of another length changes resetSecs', () => expect(taken(1, 0, 2_000).resetSecs).to.equal(2))
})
