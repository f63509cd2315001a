import { expect } from 'chai'
import { allOf, type Guarantee, isKept, none, noneOf, quantileOf, renderGuarantees, slowest } from './guarantee.ts'

const guarantee = (value: number, goal: Guarantee['goal'], title = 'p'): Guarantee => ({
  title,
  value,
  unit: ' ms',
  goal,
})

describe('a guarantee', () => {
  it('is kept at its limit, and broken beyond it and by a value that was not measured', () => {
    expect(isKept(guarantee(100, { atMost: 100 }))).to.equal(true)
    expect(isKept(guarantee(100.1, { atMost: 100 }))).to.equal(false)
    expect(isKept(guarantee(20, { atLeast: 20 }))).to.equal(true)
    expect(isKept(guarantee(Number.POSITIVE_INFINITY, { atMost: 16 }))).to.equal(false)
    expect(isKept(guarantee(Number.NaN, { atMost: 16 }))).to.equal(false)
  })

  it('is broken when nothing was measured', () => {
    const empty = [slowest('a', [], 1e9), quantileOf('b', [], { part: 0.5, atMost: 1e9 }), allOf('c', 0, 0)]
    expect(empty.filter(isKept)).to.deep.equal([])
  })

  it('is broken by one value that is too slow, missing or forbidden', () => {
    expect(isKept(slowest('a', [1, 2, 5001], 5000))).to.equal(false)
    expect(isKept(slowest('a', [1, 2, 5000], 5000))).to.equal(true)
    expect(isKept(quantileOf('b', [1, 10, 100], { part: 0.5, atMost: 9 }))).to.equal(false)
    expect(isKept(allOf('c', 9, 10))).to.equal(false)
    expect(isKept(allOf('c', 10, 10))).to.equal(true)
    expect(isKept(none('d', 1))).to.equal(false)
    expect(isKept(none('d', 0))).to.equal(true)
  })

  it('that forbids something counts what was found and shows the first, cut to 300 characters', () => {
    expect(noneOf('a', [])).to.include({ value: 0, detail: '' })
    expect(noneOf('a', ['x'.repeat(400), 'y'])).to.include({ value: 2, detail: 'x'.repeat(300) })
  })

  it('is rendered as a row with its value, its limit and whether it is kept', () => {
    const table = renderGuarantees([
      guarantee(12.34, { atMost: 100 }, 'short'),
      guarantee(3, { atLeast: 20 }, 'a longer title'),
    ])
    expect(table.split('\n')).to.deep.equal([
      'short           12.3 ms  <= 100 ms  kept',
      'a longer title  3 ms     >= 20 ms   BROKEN',
    ])
  })
})
