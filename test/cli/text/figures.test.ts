import { expect } from 'chai'
import { age, bytes, countdown, dollars, duration, timeLeft, tokens } from '../../../services/cli/text/figures.ts'

describe('services/cli/text/figures', () => {
  it('tells how long the rest takes by what is done, once there is something to tell', () => {
    expect(timeLeft({ done: 1, total: 4, elapsedMs: 20_000 })).to.equal('1:00 left')
    for (const [done, elapsedMs] of [
      [0, 5_000],
      [4, 5_000],
      [1, 10],
    ] as const)
      expect(timeLeft({ done, total: 4, elapsedMs })).to.equal('')
  })

  it('shows tokens, bytes and dollars with few digits', () => {
    expect([0, 999, 1_000, 12_400, 123_456, 999_499, 5_220_000].map(tokens)).to.deep.equal([
      '0',
      '999',
      '1K',
      '12.4K',
      '123K',
      '999K',
      '5.2M',
    ])
    expect([0, 999, 4_100, 2_500_000].map(bytes)).to.deep.equal(['0 B', '999 B', '4.1 KB', '2.5 MB'])
    expect([0, 0.0001, 0.0312, 0.9996, 10.556].map(dollars)).to.deep.equal([
      '$0',
      '<$0.001',
      '$0.031',
      '$1.000',
      '$10.56',
    ])
  })

  it('shows durations and what is left of a time', () => {
    expect([40, 6_200, 59_949, 65_000, 3_900_000].map(duration)).to.deep.equal([
      '0.0 s',
      '6.2 s',
      '59.9 s',
      '1 min 5 s',
      '1 h 5 min',
    ])
    expect([292_000, 59_001, 0, -5].map(countdown)).to.deep.equal(['4:52', '1:00', '0:00', '0:00'])
  })

  it('shows how long ago something was', () => {
    const now = Date.parse('2026-01-02T00:00:00Z')
    const times = ['2026-01-01T23:59:58Z', '2026-01-01T23:50:00Z', '2026-01-01T00:00:00Z', '2025-12-01T00:00:00Z', null]
    expect(times.map((time) => age(time, now))).to.deep.equal(['2 s', '10 min', '24 h', '32 d', ''])
  })
})
