import { expect } from 'chai'
import { crossedKey, divide, valuesOf } from '../../../shared/tenancy/usage/crossed.ts'
import type { UsageRows, UsageSums } from '../../../shared/tenancy/usage/port.ts'
import { REST } from '../../../shared/tenancy/usage/sums.ts'

const sums = (runs: number): UsageSums => ({
  ...{ runs, failed: 0, invalid: 0, input_tokens: 10 * runs, cache_read_tokens: 0, cache_write_tokens: 0 },
  ...{ output_tokens: 0, cost_usd: runs / 2, durations: new Map([[40, runs]]) },
})
/** A model, a kind, a flow, a customer and a subject. */
const combination = (values: string, runs: number) => [crossedKey(values.split(' ')), sums(runs)] as const
const runsBy = (rows: UsageRows) => [...rows].map(([key, { runs }]) => [...(valuesOf(key) ?? []), runs])

describe('the usage by two dimensions', () => {
  const models: UsageRows = new Map([
    ['m', sums(5)],
    ['n', sums(2)],
  ])
  const combinations: UsageRows = new Map([
    combination('m run f c-1 s', 1),
    combination('m step f c-1 s', 2),
    combination('m run f c-2 s', 2),
    combination('n run f c-1 s', 2),
  ])

  it('adds up the combinations that have both values', () => {
    expect(runsBy(divide(models, combinations, { by: 'model', and: 'customer' }))).to.deep.equal([
      ['m', 'c-1', 3],
      ['m', 'c-2', 2],
      ['n', 'c-1', 2],
    ])
    const kinds: UsageRows = new Map([
      ['run', sums(5)],
      ['step', sums(2)],
    ])
    expect(runsBy(divide(kinds, combinations, { by: 'kind', and: 'model' }))).to.deep.equal([
      ['run', 'm', 3],
      ['step', 'm', 2],
      ['run', 'n', 2],
    ])
  })

  it('D21e: has as the rest what no combination has, so that nothing is lost', () => {
    const late: UsageRows = new Map([
      combination('m run f c-1 s', 1),
      combination('late run f c-3 s', 1),
      [REST, sums(9)],
    ])
    const rows = divide(new Map([...models, [REST, sums(1)]]), late, { by: 'model', and: 'customer' })
    expect(runsBy(rows)).to.deep.equal([
      ['m', 'c-1', 1],
      [REST, 'c-3', 1],
      ['m', REST, 4],
      ['n', REST, 2],
    ])
    expect(rows.get(crossedKey(['m', REST]))).to.deep.equal(sums(4))
    expect(runsBy(divide(models, new Map(), { by: 'model', and: 'flow' }))).to.deep.equal([
      ['m', REST, 5],
      ['n', REST, 2],
    ])
    expect(models.get('m'), 'what it was given stays').to.deep.equal(sums(5))
  })
})
