import { expect } from 'chai'
import { withMissed } from '../../../scripts/bench/health-prober.ts'

describe('the health prober’s response times', () => {
  it('a slow answer counts once for every request that was due in the meantime, each with its own wait', () => {
    expect(withMissed(100, 20)).to.deep.equal([100, 80, 60, 40, 20])
    expect(withMissed(101, 20)).to.deep.equal([101, 81, 61, 41, 21, 1])
    expect(withMissed(20, 20)).to.deep.equal([20])
    expect(withMissed(0.5, 20)).to.deep.equal([0.5])
  })

  it('a stall of a second among a thousand fast answers shows in the 99th percentile', () => {
    const times = [...Array.from({ length: 1_000 }, () => 1), ...withMissed(1_000, 20)].toSorted((a, b) => a - b)
    expect(times[Math.floor(times.length * 0.99)]).to.be.above(500)
  })
})
