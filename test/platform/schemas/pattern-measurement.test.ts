import { expect } from 'chai'
import { RE2JS } from 're2js'
import { PatternCost } from '../../../shared/platform/schemas/pattern-cost.ts'
import { cpuMs } from '../../support/stall.ts'

/** The engine of a pattern that is slow `times` times for texts of each length, as it is while others have the CPU. */
function disturbed(pattern: string, times: number): RE2JS {
  const regex = RE2JS.compile(pattern)
  const left = new Map<number, number>()
  const test = regex.test.bind(regex)
  regex.test = (text) => {
    const size = String(text).length
    const rest = left.get(size) ?? times
    left.set(size, rest - 1)
    if (rest > 0) for (const until = cpuMs() + 0.2; cpuMs() < until; );
    return test(text)
  }
  return regex
}

describe('the measurement of a pattern', () => {
  const text = 'a'.repeat(700_000)

  it('takes no pattern for slow because single tests of it had to wait', () => {
    expect(new PatternCost(disturbed('b', 1)).maxCharsFor(text)).to.be.at.least(text.length)
  })

  it('takes one for slow that is slow each time', () => {
    expect(new PatternCost(disturbed('b', Number.POSITIVE_INFINITY)).maxCharsFor(text)).to.be.below(text.length)
  })
})
