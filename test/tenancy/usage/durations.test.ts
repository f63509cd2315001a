import { expect } from 'chai'
import { durationClass, quantile } from '../../../shared/tenancy/usage/durations.ts'

const durationsOf = (values: readonly number[]) => {
  const counts = new Map<number, number>()
  for (const ms of values) counts.set(durationClass(ms), (counts.get(durationClass(ms)) ?? 0) + 1)
  return counts
}
/** The smallest value that is not below the share `q` of the values. */
const exact = (values: readonly number[], q: number) =>
  Number(values.toSorted((a, b) => a - b)[Math.ceil(q * values.length) - 1])

describe('the percentiles of durations (D21b)', () => {
  it('are wrong by at most 19 %, for short and long durations', () => {
    const spread = Array.from({ length: 1_000 }, (_, i) => 10 ** (1 + ((i * 7_919) % 1_000) / 200))
    for (const values of [spread, [250], [1_000, 1_000, 60_000], [86_400_000]])
      for (const q of [0.5, 0.95]) {
        const ratio = Number(quantile(durationsOf(values), q)) / exact(values, q)
        expect(ratio, `${values.length} values, ${q}`).to.be.within(1 / 1.2, 1.2)
      }
  })

  it('do not depend on the order in which the classes are stored', () => {
    const durations = durationsOf([1, 10, 100, 1_000, 10_000])
    expect(quantile(new Map([...durations].toReversed()), 0.5)).to.equal(quantile(durations, 0.5))
  })

  it('are none without durations; one that is shorter than a millisecond, no number or endless has a class', () => {
    expect(quantile(new Map(), 0.5)).to.equal(null)
    for (const ms of [0, 0.3, -1, Number.NaN]) expect(durationClass(ms)).to.equal(0)
    expect(durationClass(Number.POSITIVE_INFINITY)).to.equal(128)
    expect(quantile(durationsOf([0]), 0.95)).to.equal(1)
  })
})
