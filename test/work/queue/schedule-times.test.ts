import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import {
  nextTick,
  nextTicks,
  readTick,
  readTiming,
  slowedTiming,
  type TimingInput,
  tickId,
} from '../../../shared/work/queue/schedule-times.ts'
import { tenantId } from '../../support/tenant.ts'

const at = (iso: string) => Date.parse(iso)
const ticks = (timing: Parameters<typeof nextTicks>[0], from: string, count: number) =>
  nextTicks(timing, at(from), count).map((tick) => new Date(tick).toISOString())

describe('the times of schedules', () => {
  it('every n seconds is counted from 1970, so that every process finds the same ticks', () => {
    expect(ticks({ every_secs: 90 }, '2026-11-22T00:00:31.000Z', 2)).to.deep.equal([
      '2026-11-22T00:01:30.000Z',
      '2026-11-22T00:03:00.000Z',
    ])
    expect(nextTick({ every_secs: 10 }, 10_000)).to.equal(20_000)
  })

  it('a cron pattern applies in its time zone, once a day also when the clocks change', () => {
    const nightly = { cron: '30 2 * * *', timezone: 'Europe/Berlin' }
    expect(ticks(nightly, '2026-03-28T00:00:00.000Z', 3)).to.deep.equal([
      '2026-03-28T01:30:00.000Z',
      '2026-03-29T01:00:00.000Z', // 02:30 does not exist on this day.
      '2026-03-30T00:30:00.000Z',
    ])
    expect(ticks(nightly, '2026-10-24T12:00:00.000Z', 2)).to.deep.equal([
      '2026-10-25T00:30:00.000Z', // 02:30 comes twice on this day.
      '2026-10-26T01:30:00.000Z',
    ])
  })

  it('valid timings are read; without a time zone the pattern means UTC', () => {
    expect(readTiming({ cron: ' 0 3 * * MON-FRI ' })).to.deep.equal({ cron: '0 3 * * MON-FRI', timezone: 'UTC' })
    const sixFields = { cron: '*/5 0 3 1,15 * *', timezone: 'America/New_York' }
    expect(readTiming(sixFields)).to.deep.equal(sixFields)
    for (const every_secs of [1, 31_536_000]) expect(readTiming({ every_secs })).to.deep.equal({ every_secs })
  })

  it('a pattern whose ticks are closer than allowed is refused with the least time; others are read', () => {
    const refusalOf = (cron: string, leastSecs: number) => {
      try {
        readTiming({ cron }, leastSecs)
        return undefined
      } catch (cause) {
        return cause
      }
    }
    const close: [string, number][] = [
      ['* * * * * *', 10],
      ['*/9 * * * * *', 10],
      ['0,9 0 3 * * *', 10],
      ['55,0 0,1 3 * * *', 10],
      ['* * * * *', 61],
      ['0,1 3 * * *', 61],
    ]
    for (const [cron, leastSecs] of close) {
      const refusal = refusalOf(cron, leastSecs)
      expect(refusal, cron).to.be.instanceOf(AppError).and.include({ kind: 'invalid_request', param: '/cron' })
      expect(String(refusal)).to.include(`more often than every ${leastSecs} seconds`)
    }
    const apart: [string, number][] = [
      ['*/10 * * * * *', 10],
      ['0,50 * * * * *', 10],
      ['* * * * *', 60],
      ['55 59 23 31 12 *', 61],
      ['0,2 3 * * *', 61],
    ]
    for (const [cron, leastSecs] of apart) expect(refusalOf(cron, leastSecs), cron).to.equal(undefined)
    expect(() => readTiming({ every_secs: 9 }, 10)).to.throw('from 10 to 31536000')
    expect(readTiming({ every_secs: 10 }, 10)).to.deep.equal({ every_secs: 10 })
  })

  it('a timing that is slowed down has at most one tick in the time, and one that is not too frequent stays as it is', () => {
    const utc = { timezone: 'UTC' }
    expect(slowedTiming({ every_secs: 1 }, 10)).to.deep.equal({ every_secs: 10 })
    expect(slowedTiming({ every_secs: 11 }, 10)).to.deep.equal({ every_secs: 11 })
    expect(slowedTiming({ cron: '* * * * *', ...utc }, 60)).to.deep.equal({ cron: '* * * * *', ...utc })
    const times = (cron: string, leastSecs: number, count = 3) =>
      ticks(slowedTiming({ cron, ...utc }, leastSecs), '2026-11-22T00:00:01.500Z', count).map((tick) =>
        tick.slice(11, 19),
      )
    expect(times('* * * * * *', 10)).to.deep.equal(['00:00:10', '00:00:20', '00:00:30'])
    expect(times('5-9 * * * * *', 10)).to.deep.equal(['00:00:05', '00:01:05', '00:02:05'])
    expect(times('3,13,14 * * * * *', 10)).to.deep.equal(['00:00:03', '00:00:13', '00:01:03'])
    expect(times('* * * * *', 120)).to.deep.equal(['00:02:00', '00:04:00', '00:06:00'])
    expect(times('*/20 * * * * *', 10, 2)).to.deep.equal(['00:00:20', '00:00:40'])
  })

  const wrong: [TimingInput, string, RegExp][] = [
    [{}, '', /every_secs, or cron/],
    [{ every_secs: 5, cron: '* * * * *' }, '/cron', /not both/],
    [{ every_secs: 5, timezone: 'UTC' }, '/timezone', /goes with cron/],
    [{ every_secs: 0 }, '/every_secs', /1 to 31536000/],
    [{ every_secs: 1.5 }, '/every_secs', /whole number/],
    [{ every_secs: 31_536_001 }, '/every_secs', /1 to 31536000/],
    [{ cron: '' }, '/cron', /five fields/],
    [{ cron: '* * * *' }, '/cron', /five fields/],
    [{ cron: '* * * * * * *' }, '/cron', /five fields/],
    [{ cron: '@daily' }, '/cron', /five fields/],
    [{ cron: '2030-01-01T00:00:00' }, '/cron', /five fields/],
    [{ cron: `${'1,'.repeat(60)}1 * * * *` }, '/cron', /five fields/],
    [{ cron: '99 * * * *' }, '/cron', /no valid pattern: Invalid value for minute: 99/],
    [{ cron: '* * * * FOO' }, '/cron', /no valid pattern/],
    [{ cron: '*/0 * * * *' }, '/cron', /no valid pattern/],
    [{ cron: '0 0 30 2 *' }, '/cron', /never applies/],
    [{ cron: '* * * * *', timezone: 'Mars/Base' }, '/timezone', /IANA/],
    [{ cron: '* * * * *', timezone: '' }, '/timezone', /IANA/],
  ]
  for (const [input, param, message] of wrong) {
    it(`${JSON.stringify(input).slice(0, 60)} is refused with the field and the reason`, () => {
      let thrown: unknown
      try {
        readTiming(input)
      } catch (cause) {
        thrown = cause
      }
      expect(thrown).to.be.instanceOf(AppError).and.include({ kind: 'invalid_request', param })
      expect(String(thrown)).to.match(message)
    })
  }

  it('the id of a tick is read again, differs between tenants, names and times, and has no colon', () => {
    const other = tenantId('other:tenant')
    const tick = { name: 'a.b-c_1', at: 1_700_000_000_000 }
    const ids = [
      tickId(DEFAULT_TENANT, tick),
      tickId(other, tick),
      tickId(other, { ...tick, name: 'b' }),
      tickId(other, { ...tick, at: 5 }),
    ]
    expect(new Set(ids).size).to.equal(4)
    for (const id of ids) expect(id).to.match(/^[A-Za-z0-9._-]+$/)
    expect(readTick({ id: ids[1] ?? '' })).to.deep.equal(tick)
    expect(() => readTick({ id: 'plan_1' })).to.throw()
  })
})
