import { expect } from 'chai'
import { changeOf, forecastOf, monthOf, SPANS, startsOf } from '../../../../services/console/pages/usage/spans.ts'

const iso = ({ from, before }: { from: number; before: number }) =>
  [from, before].map((time) => new Date(time).toISOString())
const starts = (span: keyof typeof SPANS, now: string) => iso(startsOf(SPANS[span], Date.parse(now)))

describe('the span of the usage page', () => {
  it('seven days are today and six before it, 24 hours are 24, each beside as much time before', () => {
    const now = '2026-11-29T14:50:00Z'
    expect(starts('7d', now)).to.deep.equal(['2026-11-23T00:00:00.000Z', '2026-11-16T00:00:00.000Z'])
    expect(starts('30d', now)).to.deep.equal(['2026-10-31T00:00:00.000Z', '2026-10-01T00:00:00.000Z'])
    expect(starts('1d', now)).to.deep.equal(['2026-11-28T15:00:00.000Z', '2026-11-27T15:00:00.000Z'])
    expect(starts('7d', '2026-11-29T00:00:00Z')[0]).to.equal('2026-11-23T00:00:00.000Z')
  })

  it('a month is forecast as the mean of its days until now, for all of them, once the first is over', () => {
    const half = Date.parse('2026-11-16T00:00:00Z')
    expect(forecastOf(30, half)).to.equal(60)
    expect(forecastOf(30, Date.parse('2026-11-01T23:00:00Z'))).to.equal(undefined)
    expect(monthOf(Date.parse('2028-02-29T12:00:00Z'))).to.deep.equal({
      from: Date.parse('2028-02-01T00:00:00Z'),
      days: 29,
      daysOver: 28.5,
    })
    expect(monthOf(Date.parse('2026-12-31T23:59:59Z'))).to.include({ days: 31 })
  })

  it('a change is in percents, that of a share in points, and nothing beside nothing', () => {
    expect([changeOf(112, 100), changeOf(1, 2), changeOf(2, 2)]).to.deep.equal(['▲ 12 %', '▼ 50 %', '± 0 %'])
    expect([changeOf(0.6, 0.4, true), changeOf(0, 3), changeOf(5, 0), changeOf(undefined, 5)]).to.deep.equal([
      ...['▲ 20 points', '▼ 100 %'],
      ...[undefined, undefined],
    ])
  })
})
