import { expect } from 'chai'
import { isMet } from '../../../scripts/bench/figure.ts'
import { addedRatio, growth, median, quantile } from '../../../scripts/bench/statistics.ts'

describe('the statistics of the bench', () => {
  it('the median is the middle value in numeric order, or the mean of the two in the middle', () => {
    expect(median([10, 9, 100])).to.equal(10)
    expect(median([4, 1, 3, 2])).to.equal(2.5)
    expect(median([7])).to.equal(7)
  })

  it('a quantile is interpolated linearly', () => {
    expect(quantile([0, 10, 20, 30, 40], 0.9)).to.be.closeTo(36, 1e-9)
    expect(quantile([3, 1, 2], 0)).to.equal(1)
    expect(quantile([3, 1, 2], 1)).to.equal(3)
  })

  it('an empty list is an error', () => {
    expect(() => median([])).to.throw('nothing was measured')
  })

  it('compares what is added to the provider’s time: 3 ms against 1 ms is 3x', () => {
    expect(addedRatio({ direct: [1], baseline: [2], ours: [4] })).to.equal(3)
  })

  it('a baseline that adds nothing is an error', () => {
    expect(() => addedRatio({ direct: [2], baseline: [2], ours: [4] })).to.throw('too noisy')
  })

  it('growth is the median of the last values divided by that of the first', () => {
    expect(growth([1, 2, 3, 50, 50, 3, 4, 5], 3)).to.equal(2)
  })

  it('a goal is met at its limit', () => {
    expect(isMet({ atMost: 2 }, 2)).to.equal(true)
    expect(isMet({ atMost: 2 }, 2.01)).to.equal(false)
    expect(isMet({ atLeast: 2 }, 2)).to.equal(true)
    expect(isMet({ atLeast: 2 }, 1.99)).to.equal(false)
  })
})
