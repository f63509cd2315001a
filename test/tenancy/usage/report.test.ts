import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import type { UsageRange, UsageRows, UsageSums } from '../../../shared/tenancy/usage/port.ts'
import { type UsageQuery, UsageReport } from '../../../shared/tenancy/usage/report.ts'
import { REST } from '../../../shared/tenancy/usage/sums.ts'
import { failureOf } from '../../support/failure-of.ts'

const NOW = new Date('2026-11-22T10:30:00.000Z')
const HOUR_MS = 3_600_000
const sums = (runs: number, durations: [number, number][] = []): UsageSums => ({
  ...{
    runs,
    failed: 0,
    invalid: 0,
    input_tokens: runs,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: 0,
    cost_usd: 0,
    durations: new Map(durations),
  },
})
const hour = (n: number): string => new Date(Date.parse('2026-11-22T00:00:00.000Z') + n * HOUR_MS).toISOString()

/** The report of a tenant with these rows by their hours, and the ranges that it has read. */
function setUp(rows: Record<string, UsageRows>) {
  const read: UsageRange[] = []
  const store = {
    async read(_tenant: unknown, range: UsageRange) {
      read.push(range)
      return Object.entries(rows)
        .filter(([start]) => start >= range.from && start <= range.until)
        .slice(0, range.limit)
        .map(([start, found]) => ({ start, rows: found }))
    },
  }
  const report = new UsageReport(store, () => NOW)
  const page = (query: Partial<UsageQuery> = {}) =>
    report.page(DEFAULT_TENANT, { by: 'kind', bucket: 'hour', limit: 10, ...query })
  return { page, read, flows: () => report.flows(DEFAULT_TENANT) }
}

describe('the report of usage', () => {
  it('D21: shows the last 24 hours, or 30 days, unless it is told otherwise, in whole hours and days', async () => {
    const { page, read } = setUp({})
    await page()
    await page({ bucket: 'day' })
    await page({ from: '2026-11-22T03:10:00Z', to: '2026-11-22T05:00:00Z' })
    expect(read.map(({ from, until }) => [from, until])).to.deep.equal([
      ['2026-11-21T10:00:00.000Z', '2026-11-22T10:00:00.000Z'],
      ['2026-10-23T00:00:00.000Z', '2026-11-22T00:00:00.000Z'],
      ['2026-11-22T03:00:00.000Z', '2026-11-22T04:00:00.000Z'],
    ])
  })

  it('D21: has a row for each hour and key, oldest first, with no key as null, and durations by their shares', async () => {
    const { page } = setUp({
      [hour(1)]: new Map([
        ['run', sums(2)],
        ['flow', sums(1)],
      ]),
      [hour(2)]: new Map([['', sums(3, [[40, 3]])]]),
    })
    const { rows, next_cursor } = await page()
    expect(rows.map(({ bucket, key, runs }) => [bucket, key, runs])).to.deep.equal([
      [hour(1), 'flow', 1],
      [hour(1), 'run', 2],
      [hour(2), null, 3],
    ])
    expect(next_cursor).to.equal(null)
    expect(rows[0]).to.include({ p50_ms: 0, p95_ms: 0 })
    expect(rows[2]?.p50_ms).to.be.within(2 ** (39 / 4), 2 ** (40 / 4))
  })

  it('D21c: has a row for a value that is called as the rest, beside that of the rest', async () => {
    const rows = new Map([
      ['other', sums(2)],
      [REST, sums(5)],
    ])
    const { page } = setUp({ [hour(9)]: rows })
    const first = await page({ by: 'flow', limit: 1 })
    const next = await page({ by: 'flow', cursor: first.next_cursor ?? '' })
    const shown = [...first.rows, ...next.rows].map(({ key, rest, runs }) => [key, rest, runs])
    expect(shown).to.deep.equal([
      ['other', undefined, 2],
      ['other', [true], 5],
    ])
    const pairs = (await page({ by: 'flow', and: 'model' })).rows.map(({ keys, rest, runs }) => [keys, rest, runs])
    expect(pairs).to.deep.equal([
      [['other', 'other'], [false, true], 2],
      [['other', 'other'], [true, true], 5],
    ])
  })

  it('D22.3: adds up this hour and the 23 before for each flow, in one reading, and has nothing of others', async () => {
    const ended = { ...sums(2, [[40, 2]]), failed: 1, invalid: 1, cost_usd: 0.5 }
    const { flows, read } = setUp({
      [hour(-14)]: new Map([['triage', sums(9)]]),
      [hour(-13)]: new Map([['triage', ended]]),
      [hour(10)]: new Map([
        ['triage', ended],
        ['other', sums(4)],
      ]),
    })
    const figures = await flows()
    const { p50_ms, p95_ms, ...rest } = figures('triage')
    const hours = [2, ...Array<number>(22).fill(0), 2]
    expect(rest).to.deep.equal({ runs: 4, failed: 2, invalid: 2, cost_usd: 1, runs_by_hour: hours })
    for (const ms of [p50_ms, p95_ms]) expect(ms).to.be.within(2 ** (39 / 4), 2 ** (40 / 4))
    const nothing = { runs: 0, failed: 0, invalid: 0, cost_usd: 0, p50_ms: null, p95_ms: null }
    expect(figures('new')).to.deep.equal({ ...nothing, runs_by_hour: Array<number>(24).fill(0) })
    expect(read.map(({ by, from, until }) => [by, from, until])).to.deep.equal([['flow', hour(-13), hour(10)]])
  })

  it('D42.5: by one name of metadata shows its values, page by page', async () => {
    const rows = new Map([
      ['team=red', sums(2)],
      ['team=blue=dark', sums(1)],
      ['teams=green', sums(4)],
      ['stage=red', sums(8)],
    ])
    const { page } = setUp({ [hour(9)]: rows })
    const query = { by: 'metadata', name: 'team', limit: 1 } as const
    const first = await page(query)
    expect(first.rows.map(({ key, runs }) => [key, runs])).to.deep.equal([['blue=dark', 1]])
    const rest = await page({ ...query, cursor: first.next_cursor ?? '' })
    expect(rest.rows.map(({ key, runs }) => [key, runs])).to.deep.equal([['red', 2]])
    expect(rest.next_cursor).to.equal(null)
  })

  it('goes on behind the last row of a page, within an hour too', async () => {
    const keys = ['a', 'b', 'c'].map((key): [string, UsageSums] => [key, sums(1)])
    const { page } = setUp({ [hour(1)]: new Map(keys), [hour(2)]: new Map(keys.slice(0, 1)) })
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const { rows, next_cursor } = await page({ limit: 2, cursor })
      seen.push(rows.map(({ bucket, key }) => `${new Date(bucket).getUTCHours()}${key}`).join(' '))
      cursor = next_cursor ?? undefined
    } while (cursor)
    expect(seen).to.deep.equal(['1a 1b', '1c 2a'])
  })

  it('reads on when a reading was full, until the page is', async () => {
    const rows = Object.fromEntries(Array.from({ length: 120 }, (_, n) => [hour(n), new Map([['run', sums(1)]])]))
    const { page, read } = setUp(rows)
    const whole = await page({ from: hour(0), to: hour(120), limit: 200 })
    expect([whole.rows.length, read.map(({ from }) => from)]).to.deep.equal([120, [hour(0), hour(50), hour(100)]])
    await page({ from: hour(0), to: hour(120), limit: 20 })
    expect(read).to.have.length(4)
  })

  it('refuses a range that ends before it begins, a time that is none, and a cursor that it has not made', async () => {
    const { page } = setUp({})
    expect(await failureOf(page({ from: hour(2), to: hour(2) }))).to.include({
      kind: 'invalid_request',
      param: '/from',
    })
    expect(await failureOf(page({ to: 'yesterday' }))).to.include({ kind: 'invalid_request' })
    const made = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const cursor of ['x', made(['2026-11-22', 'a']), made(['never', 'a']), made([hour(1)])])
      expect(await failureOf(page({ cursor })), cursor).to.include({ kind: 'invalid_request' })
  })
})
