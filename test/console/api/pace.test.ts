import { expect } from 'chai'
import { Pace } from '../../../services/console/api/pace.ts'

const LIMIT = 60
const headers = (left: number) => new Headers({ 'ratelimit-remaining': String(left) })

/** Tabs whose lists all have something to read again for five minutes, each with as many requests. Returns the fewest requests that were left, and how many were made. */
function play(tabs: number, lists: number, requests: number): { least: number; made: number } {
  const sent: number[] = []
  const paces = Array.from({ length: tabs }, () => ({ pace: new Pace(), due: Array.from({ length: lists }, () => 0) }))
  for (const { pace } of paces) pace.learn(headers(LIMIT))
  let [least, made] = [LIMIT, 0]
  for (let now = 0; now < 300_000; now += 100)
    for (const { pace, due } of paces)
      for (const [i, at] of due.entries()) {
        if (at > now) continue
        const waitMs = pace.turnMs(now)
        due[i] = now + (waitMs || 2_500)
        if (waitMs > 0) continue
        while ((sent[0] ?? now) <= now - 60_000) sent.shift()
        for (let request = 0; request < requests; request++) {
          if (request > 0) pace.more()
          sent.push(now)
          made++
        }
        least = Math.min(least, LIMIT - sent.length)
        pace.learn(headers(Math.max(0, LIMIT - sent.length)))
      }
  return { least, made }
}

describe('what the console reads by itself', () => {
  for (const [tabs, lists, requests] of [
    [1, 4, 1],
    [2, 25, 1],
    [4, 10, 1],
    [2, 2, 4],
  ] as const)
    it(`leaves people requests of each minute, with ${lists} lists of ${requests} requests in each of ${tabs} tabs in a busy tenant`, () => {
      const { least, made } = play(tabs, lists, requests)
      expect(least).to.be.at.least(4)
      expect(made).to.be.above(80)
    })

  it('is read at once where a page has a few lists, or the server has no limit', () => {
    const pace = new Pace()
    expect(Array.from({ length: 9 }, () => pace.turnMs(0)).every((ms) => ms === 0)).to.equal(true)
    pace.learn(headers(LIMIT))
    expect(Array.from({ length: 5 }, () => pace.turnMs(9))).to.deep.equal([0, 0, 0, 0, 2_000])
  })
})
