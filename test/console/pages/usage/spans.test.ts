import { expect } from 'chai'
import { startOf } from '../../../../services/console/pages/usage/start-of.ts'

describe('the span of the usage page', () => {
  const now = Date.parse('2026-11-29T14:50:00Z')

  it('seven days are seven bars, of which today is the last, and 24 hours are 24', () => {
    expect(startOf({ days: 7, bucket: 'day' }, now)).to.equal('2026-11-23T00:00:00.000Z')
    expect(startOf({ days: 30, bucket: 'day' }, now)).to.equal('2026-10-31T00:00:00.000Z')
    expect(startOf({ days: 1, bucket: 'hour' }, now)).to.equal('2026-11-28T15:00:00.000Z')
    expect(startOf({ days: 7, bucket: 'day' }, Date.parse('2026-11-29T00:00:00Z'))).to.equal('2026-11-23T00:00:00.000Z')
  })
})
