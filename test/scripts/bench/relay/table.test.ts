import { expect } from 'chai'
import { ratio, type Sample } from '../../../../scripts/bench/relay/figures/throughput.ts'
import { outcomeOf, type Row } from '../../../../scripts/bench/relay/row.ts'
import { floodOf } from '../../../../scripts/bench/relay/source/script.ts'
import { format, renderTable } from '../../../../scripts/bench/relay/table.ts'

const row = (fields: Partial<Row>): Row => ({
  goal: 'G1',
  what: 'rate',
  bound: { atLeast: 6 },
  unit: 'x',
  detail: '',
  ...fields,
})

const sample = (perSecond: number): Sample => ({
  perSecond,
  us: 1,
  redisUs: 0,
  cpu: { gateway: 1, worker: 1, redis: 1 },
})

describe('the relay bench’s table', () => {
  it('a goal is kept at its bound, missed beyond it, and neither without a value', () => {
    expect(outcomeOf(row({ value: 6 }))).to.equal('kept')
    expect(outcomeOf(row({ value: 5.99 }))).to.equal('missed')
    expect(outcomeOf(row({ value: 0, bound: { atMost: 0 } }))).to.equal('kept')
    expect(outcomeOf(row({ value: 0.01, bound: { atMost: 0 } }))).to.equal('missed')
    expect(outcomeOf(row({}))).to.equal('not measured')
  })

  it('shows each value with its bound and whether the goal is kept', () => {
    const table = renderTable([row({ value: 6.41, detail: '300 k/s to 47 k/s' }), row({ goal: 'G8' })])
    expect(table).to.match(/^G1 +rate +6\.41x +>= 6x +kept +300 k\/s to 47 k\/s$/m)
    expect(table).to.match(/^G8 +rate +- +>= 6x +not measured$/m)
  })

  it('numbers have three significant digits, and two below 1', () => {
    expect([412.3, 41.23, 4.123, 0.04123, 0, 3].map(format)).to.deep.equal(['412', '41.2', '4.12', '0.041', '0', '3'])
  })

  it('a ratio is the median of the rounds’ ratios, since a slow round affects both sides alike', () => {
    const relay = [600, 60, 630].map(sample)
    const direct = [100, 10, 100].map(sample)
    expect(ratio(relay, direct, ({ perSecond }) => perSecond)).to.equal(6)
  })

  it('1, 50 and 500 streams produce 200, 4 and 1 events each per loop turn', () => {
    expect([1, 50, 500].map((streams) => floodOf(streams).perTurn)).to.deep.equal([200, 4, 1])
  })
})
