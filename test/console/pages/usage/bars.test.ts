import { expect } from 'chai'
import { barsOf, stepsOf } from '../../../../services/console/pages/usage/bars.ts'
import { measureOf, type Row, sumsOf } from '../../../../services/console/pages/usage/sums.ts'

const row = (bucket: string, key: string, amounts: Partial<Row> = {}): Row =>
  ({ bucket, key, runs: 1, failed: 0, input_tokens: 10, output_tokens: 5, cost_usd: 0, ...amounts }) as Row

describe('the bars of the usage page', () => {
  const span = { from: Date.parse('2026-11-23T00:00:00Z'), to: Date.parse('2026-11-29T20:00:00Z') }
  const rows = [
    row('2026-11-24T00:00:00Z', 'a', { cost_usd: 2 }),
    row('2026-11-24T00:00:00Z', 'b', { cost_usd: 1 }),
    row('2026-11-29T00:00:00Z', 'c', { cost_usd: 4, failed: 1 }),
    row('2026-11-22T00:00:00Z', 'a', { cost_usd: 99 }),
  ]

  it('seven days are seven bars, also those in which nothing was used, and what is outside them is left out', () => {
    const bars = barsOf(rows, { keys: ['a'], measure: 'cost', bucket: 'day', span })
    expect(bars.map(({ total }) => total)).to.deep.equal([0, 3, 0, 0, 0, 0, 4])
    expect(bars[1]?.parts).to.deep.equal([2, 1])
    expect(new Date(bars[0]?.time ?? 0).toISOString()).to.equal('2026-11-23T00:00:00.000Z')
  })

  it('are of the measure that was chosen: dollars where anything has a price, else tokens', () => {
    const tokens = barsOf(rows, { keys: [], measure: 'tokens', bucket: 'day', span })
    expect(tokens[1]?.total).to.equal(30)
    expect([measureOf(null, rows), measureOf('toString', [row('', 'a')]), measureOf('failed', rows)]).to.deep.equal([
      'cost',
      'tokens',
      'failed',
    ])
    expect(sumsOf(rows, 'failed').map(({ key, share }) => [key, share])[0]).to.deep.equal(['c', 1])
  })

  for (const [top, isCounted, steps] of [
    [0.4, false, [0, 0.1, 0.2, 0.30000000000000004, 0.4]],
    [2.2, true, [0, 1, 2]],
    [33, false, [0, 10, 20, 30]],
    [4_400, true, [0, 1_000, 2_000, 3_000, 4_000]],
  ] as const)
    it(`the lines up to ${top} are at round values`, () => {
      expect(stepsOf(top, isCounted)).to.deep.equal(steps)
    })
})
