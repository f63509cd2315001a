import { expect } from 'chai'
import { barsOf, nameOf, stepsOf } from '../../../../services/console/pages/usage/bars.ts'
import { csvOf } from '../../../../services/console/pages/usage/csv.ts'
import { runsOf } from '../../../../services/console/pages/usage/runs-of.ts'
import { addUp, keyOf, measureOf, p95Of, type Row, sumsOf } from '../../../../services/console/pages/usage/sums.ts'
import { classesOf, durationClass, quantile } from '../../../../shared/tenancy/usage/durations.ts'

const row = (bucket: string, key: string | null, amounts: Partial<Row> = {}): Row => ({
  ...{ bucket, key, runs: 1, failed: 0, invalid: 0, input_tokens: 10, cache_read_tokens: 0, cache_write_tokens: 0 },
  ...{ output_tokens: 5, cost_usd: 0, p50_ms: 0, p95_ms: 0, durations: [] },
  ...amounts,
})

const keysOf = (...values: string[]) => values.map((value) => keyOf(row('', value)))

describe('the bars of the usage page', () => {
  const span = { from: Date.parse('2026-11-23T00:00:00Z'), to: Date.parse('2026-11-29T20:00:00Z') }
  const rows = [
    row('2026-11-24T00:00:00Z', 'a', { cost_usd: 2, durations: [{ up_to_ms: 1_024, runs: 1 }] }),
    row('2026-11-24T00:00:00Z', 'b', { cost_usd: 1, durations: [{ up_to_ms: 4_096, runs: 1 }] }),
    row('2026-11-29T00:00:00Z', 'c', { cost_usd: 4, failed: 1, cache_read_tokens: 5 }),
    row('2026-11-22T00:00:00Z', 'a', { cost_usd: 99 }),
  ]
  const bars = (measure: 'cost' | 'tokens' | 'p95' | 'cache', keys = keysOf('a')) =>
    barsOf(rows, { totals: rows, keys, measure, bucket: 'day', span })

  it('seven days are seven bars, also those in which nothing was used, and what is outside them is left out', () => {
    expect(bars('cost').map(({ total }) => total)).to.deep.equal([0, 3, 0, 0, 0, 0, 4])
    expect(bars('cost')[1]?.parts).to.deep.equal([2, 1])
    expect(new Date(bars('cost')[0]?.time ?? 0).toISOString()).to.equal('2026-11-23T00:00:00.000Z')
  })

  it('days are those of UTC, also where the clocks of the reader change', () => {
    const from = Date.parse('2026-10-24T00:00:00Z')
    const to = Date.parse('2026-10-26T12:00:00Z')
    const days = barsOf([], { totals: [], keys: [], measure: 'runs', bucket: 'day', span: { from, to } })
    expect(days.map(({ time }) => nameOf(time, 'day').replace(/\D/g, ''))).to.deep.equal(['24', '25', '26'])
    const hours = barsOf([], { totals: [], keys: [], measure: 'runs', bucket: 'hour', span: { from, to } })
    expect(hours).to.have.length(61)
  })

  it('what has no row of its own is with the others, so that a bar is all that was used', () => {
    const totals = [row('2026-11-24T00:00:00Z', 'run', { cost_usd: 10 })]
    const [, bar] = barsOf(rows, { totals, keys: keysOf('a', 'b'), measure: 'cost', bucket: 'day', span })
    expect(bar).to.deep.include({ total: 10, parts: [2, 1, 7] })
    expect(sumsOf(rows.slice(0, 2), 'cost', addUp(totals)).map(({ name, share }) => [name, share])).to.deep.equal([
      ['a', 0.2],
      ['b', 0.1],
    ])
  })

  it('a percentile and a share are of all runs of a bar, and not known where there were none', () => {
    expect(bars('cache').map(({ total, parts }) => [total, parts])[6]).to.deep.equal([0.5, [0.5]])
    expect(bars('cache')[0]?.total).to.equal(undefined)
    expect(bars('p95')[1]?.total).to.be.within(3_445, 4_096)
    expect(bars('p95')[6], 'an older gateway tells no durations').to.deep.include({ total: undefined, parts: [0] })
  })

  it('D21b: the percentile of rows that are added up is that of the API for them', () => {
    const durations = new Map([10, 300, 900, 2_500, 70_000].map((ms, i) => [durationClass(ms), 9 * i + 1]))
    const known = new Map(classesOf(durations).map(({ up_to_ms, runs }) => [up_to_ms, runs]))
    expect(p95Of(known)).to.be.closeTo(quantile(durations, 0.95) ?? 0, 30)
  })

  it('are of the measure that was chosen: dollars where anything has a price, else tokens', () => {
    expect(bars('tokens', [])[1]?.total).to.equal(30)
    const measures = [measureOf(null, rows), measureOf('toString', [row('', 'a')]), measureOf('failed', rows)]
    expect(measures).to.deep.equal(['cost', 'tokens', 'failed'])
    expect(sumsOf(rows, 'failed').map(({ name, share }) => [name, share])[0]).to.deep.equal(['c', 1])
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

describe('what the usage page leads to', () => {
  const span = { from: Date.parse('2026-11-23T00:00:00Z'), to: Date.parse('2026-11-24T00:00:00Z') }
  const link = (by: string, values: (string | null | undefined)[], measure: 'cost' | 'failed' = 'cost') =>
    runsOf({ by, values, measure, value: 1, span })

  it('are the runs of a part of it, by the filters of the API', () => {
    const times = { since: '2026-11-23T00:00:00.000Z', until: '2026-11-24T00:00:00.000Z' }
    expect(link('model,customer', ['m', 'c&1'])).to.deep.equal({ model: 'm', customer_id: 'c&1', ...times })
    const failed = { 'metadata.team': 'red', status: 'failed', ...times }
    expect(link('metadata.team', ['red'], 'failed')).to.deep.equal(failed)
    expect([link('customer', [null]), link('model,flow', ['m', undefined])]).to.deep.equal([undefined, undefined])
    expect(link('flow', ['other'])).to.deep.equal({ flow: 'other', ...times })
  })

  it('a file for spreadsheets has a column for each dimension, and no text of it is a formula', () => {
    const cells = ['=1+1', '+1', '-1', '@a', '\tb', '＝1', 'a"b', 'a,b'].map((key) =>
      row('2026-11-24', 'm', { keys: [key, null] }),
    )
    const [head, ...lines] = csvOf('model,customer', cells).split('\r\n')
    const numbers = ['runs', 'failed', 'invalid', 'input_tokens', 'cache_read_tokens', 'cache_write_tokens']
    const columns = ['bucket', 'model', 'customer', ...numbers, 'output_tokens', 'cost_usd', 'p50_ms', 'p95_ms']
    expect(head).to.equal(columns.map((column) => `"${column}"`).join(','))
    expect(lines.map((line) => /^"2026-11-24",(.*),"",1,0,0,10,/.exec(line)?.[1])).to.deep.equal([
      ...[`"'=1+1"`, `"'+1"`, `"'-1"`, `"'@a"`, `"'\tb"`, `"'＝1"`, '"a""b"', '"a,b"'],
    ])
  })

  it('a flow that is called as the rest has its own row, link and line of the file, beside the rest and those without one', () => {
    const rows = [
      row('2026-11-24', 'other', { cost_usd: 4 }),
      row('2026-11-24', 'other', { cost_usd: 2, rest: [true] }),
      row('2026-11-24', null, { cost_usd: 1 }),
      row('2026-11-24', '(none)', { cost_usd: 0.5 }),
    ]
    const sums = sumsOf(rows, 'cost')
    expect(sums.map(({ name, values, cost_usd }) => [name, values[0], cost_usd])).to.deep.equal([
      ...[
        ['other', 'other', 4],
        ['(other)', undefined, 2],
      ],
      ...[
        ['(none)', null, 1],
        ['(none)', '(none)', 0.5],
      ],
    ])
    const keys = sums.map(({ key }) => key)
    const [bar] = barsOf(rows, { totals: rows, keys, measure: 'cost', bucket: 'day', span: { ...span, from: span.to } })
    expect(bar?.parts).to.deep.equal([4, 2, 1, 0.5, 0])
    const cells = csvOf('flow', rows)
      .split('\r\n')
      .map((line) => line.split(',')[1])
    expect(cells).to.deep.equal(['"flow"', '"other"', '"(other)"', '""', '"(none)"'])
  })
})
