import { expect } from 'chai'
import { isoTime, readTime } from '../../shared/kernel/time.ts'

describe('times', () => {
  it('isoTime renders what toISOString does, in any order of the seconds, and before 1970, too', () => {
    const now = Date.parse('2026-11-28T12:34:56.007Z')
    for (const ms of [now, now + 1, now + 992, now + 993, now, 0, -1, -1_000, -86_400_001, now + 7 * 86_400_000])
      expect(isoTime(ms)).to.equal(new Date(ms).toISOString())
  })

  it('isoTime without an argument is that of now', () => {
    const before = Date.now()
    const at = Date.parse(isoTime())
    expect(at).to.be.within(before, Date.now())
  })

  it('readTime reads ISO 8601 and nothing else', () => {
    expect(readTime('since', undefined)).to.equal(undefined)
    expect(readTime('since', '2026-11-22')).to.equal(Date.parse('2026-11-22T00:00:00Z'))
    expect(readTime('since', '2026-11-22T10:00:00+01:00')).to.equal(Date.parse('2026-11-22T09:00:00Z'))
    for (const time of ['yesterday', '22.11.2026', '2026-13-01'])
      expect(() => readTime('since', time)).to.throw('since must be a time in ISO 8601')
  })
})
