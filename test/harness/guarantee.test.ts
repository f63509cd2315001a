import { expect } from 'chai'
import { type Guarantee, isKept, renderPromises } from './guarantee.ts'
import { withMissed } from './prober.ts'

const promised = (value: number, goal: Guarantee['goal'], title = 'p'): Guarantee => ({
  title,
  value,
  unit: ' ms',
  goal,
})

describe('the abuse’s arithmetic', () => {
  it('a slow answer counts once for every request that was due meanwhile, each with its own wait', () => {
    expect(withMissed(100, 20)).to.deep.equal([100, 80, 60, 40, 20])
    expect(withMissed(101, 20)).to.deep.equal([101, 81, 61, 41, 21, 1])
    expect(withMissed(20, 20)).to.deep.equal([20])
    expect(withMissed(0.5, 20)).to.deep.equal([0.5])
  })

  it('a stall of a second among a thousand quick answers shows in the 99th percentile', () => {
    const times = [...Array.from({ length: 1_000 }, () => 1), ...withMissed(1_000, 20)].toSorted((a, b) => a - b)
    expect(times[Math.floor(times.length * 0.99)]).to.be.above(500)
  })

  it('a promise is kept at its limit, and broken by what was not measured', () => {
    expect(isKept(promised(100, { atMost: 100 }))).to.equal(true)
    expect(isKept(promised(100.1, { atMost: 100 }))).to.equal(false)
    expect(isKept(promised(20, { atLeast: 20 }))).to.equal(true)
    expect(isKept(promised(Number.POSITIVE_INFINITY, { atMost: 16 }))).to.equal(false)
    expect(isKept(promised(Number.NaN, { atMost: 16 }))).to.equal(false)
  })

  it('the table says of each figure what it should be and whether it is', () => {
    const table = renderPromises([
      promised(12.34, { atMost: 100 }, 'short'),
      promised(3, { atLeast: 20 }, 'a longer title'),
    ])
    expect(table.split('\n')).to.deep.equal([
      'short           12.3 ms  <= 100 ms  kept',
      'a longer title  3 ms     >= 20 ms   BROKEN',
    ])
  })
})
