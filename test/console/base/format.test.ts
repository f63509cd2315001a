import { expect } from 'chai'
import {
  bytes,
  countdown,
  counted,
  duration,
  moment,
  money,
  percent,
  relative,
  short,
  shortId,
} from '../../../services/console/base/format.ts'

describe('the numbers of the console', () => {
  it('durations and ages are as exact as their size allows', () => {
    expect([0, 240, 9_949, 9_950, 59_499, 125_000, 7_320_000].map(duration)).to.deep.equal([
      ...['0 ms', '0.2 s', '9.9 s', '10 s', '59 s', '2 min 5 s', '2 h 2 min'],
    ])
    const now = Date.parse('2026-11-25T12:00:00Z')
    const at = (seconds: number) => relative(new Date(now + seconds * 1_000).toISOString(), now)
    expect([4, -5, -59, -60, -3_599, -7_200, -172_800, 7_200].map(at)).to.deep.equal([
      ...['just now', '5 s ago', '59 s ago', '1 min ago', '59 min ago', '2 h ago', '2 d ago', 'in 2 h'],
    ])
  })

  it('a countdown is rounded up and ends at 0', () => {
    expect([292_000, 59_001, 1, 0, -5_000].map(countdown)).to.deep.equal(['4:52', '1:00', '0:01', '0:00', '0:00'])
  })

  it('counts, sizes and sums are short', () => {
    expect([950, 1_000, 12_440, 999_499, 999_500, 3_100_000].map(short)).to.deep.equal([
      ...['950', '1K', '12.4K', '999K', '1M', '3.1M'],
    ])
    expect([23, 1_024, 4_200, 1_048_576].map(bytes)).to.deep.equal(['23 B', '1 KB', '4.1 KB', '1 MB'])
    expect([0, 0.0004, 0.0312, 12.4].map(money)).to.deep.equal(['$0', '$0.0004', '$0.031', '$12.40'])
    expect([counted(1, 'run'), counted(2, 'run'), counted(0, 'entry', 'entries')]).to.deep.equal([
      ...['1 run', '2 runs', '0 entries'],
    ])
  })

  it('a share that is not whole is neither all nor nothing', () => {
    expect([0, 0.001, 0.5, 0.999, 1].map(percent)).to.deep.equal(['0 %', '1 %', '50 %', '99 %', '100 %'])
  })

  it('an id is known by its beginning and its end', () => {
    expect([shortId('support-7'), shortId(`run_${'0f'.repeat(16)}`)]).to.deep.equal(['support-7', 'run_0f0f0…0f0f'])
  })
})

describe('the times of the console', () => {
  it('a time has its day, unless it is that of the time before, and seconds where there are some', () => {
    const [noon, later, second, next] = [
      '2026-11-25T12:00:00.000Z',
      '2026-11-25T12:15:00.000Z',
      '2026-11-25T12:15:07.000Z',
      '2026-11-27T12:15:00.000Z',
    ]
    const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' })
    const dayOf = (at: string) => day.format(new Date(at))
    expect(moment(noon)).to.match(/:00/).and.include(dayOf(noon))
    expect(moment(later, noon)).to.match(/:15/).and.not.include(dayOf(noon))
    expect(moment(second, noon)).to.match(/:15:07/)
    expect(moment(next, noon)).to.include(dayOf(next))
  })
})
