import { expect } from 'chai'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { type StatsQuery, statsOf } from '../../../../shared/work/flows/history/stats.ts'
import type { Dispatch, DispatchStore } from '../../../../shared/work/flows/port.ts'
import { newDispatch, OK } from '../../../contract/dispatch-setup.ts'

const HOUR_MS = 3_600_000
const NOON = Date.parse('2026-11-22T12:00:00Z')

const at = (ms: number, more: Partial<Dispatch> = {}) => newDispatch(NOON + ms, more)
const ended = (ms: number, durationMs: number, more: Partial<Dispatch> = {}) =>
  at(ms, { ...OK, duration_ms: durationMs, ...more })

/** Pages records as the store does: newest first, within the times of the query. */
function listing(records: readonly Dispatch[]) {
  const seen = { flows: new Set<string | undefined>(), kinds: new Set<string>() }
  const dispatches: Pick<DispatchStore, 'list'> = {
    async list(_tenant, { kind, flow, sinceMs = 0, untilMs = Infinity, limit, cursor = '0' }) {
      seen.flows.add(flow)
      seen.kinds.add(kind)
      const inTime = records
        .filter(({ started_at }) => Date.parse(started_at) >= sinceMs && Date.parse(started_at) < untilMs)
        .toSorted((a, b) => b.started_at.localeCompare(a.started_at))
      const end = Number(cursor) + limit
      return { dispatches: inTime.slice(Number(cursor), end), next_cursor: end < inTime.length ? `${end}` : null }
    },
  }
  return { dispatches, seen }
}

const QUERY: StatsQuery = { bucket: 'hour', fromMs: NOON - 24 * HOUR_MS, toMs: NOON + 24 * HOUR_MS, limit: 50 }

describe('the figures of the history', () => {
  const stats = (records: readonly Dispatch[], query: Partial<StatsQuery> = {}) =>
    statsOf(listing(records).dispatches, TENANT, { ...QUERY, ...query })

  it('D22.2: adds up the executions of each hour, newest first; hours without any are left out', async () => {
    const records = [
      ended(0, 100),
      ended(1, 300, { status: 'invalid_output', cost_usd: 0.5 }),
      ended(HOUR_MS - 1, 200, { status: 'error' }),
      at(2, { status: 'rejected', duration_ms: 0 }),
      at(3, { status: 'running' }),
      ended(3 * HOUR_MS, 70),
    ]
    expect(await stats(records)).to.deep.equal({
      bucket: 'hour',
      buckets: [
        {
          start: '2026-11-22T15:00:00.000Z',
          runs: 1,
          failed: 0,
          verdicts: { valid: 1, invalid: 0 },
          input_tokens: 100,
          output_tokens: 20,
          cost_usd: 0.25,
          p50_ms: 70,
          p95_ms: 70,
          is_partial: false,
        },
        {
          start: '2026-11-22T12:00:00.000Z',
          runs: 5,
          failed: 2,
          verdicts: { valid: 1, invalid: 1 },
          input_tokens: 300,
          output_tokens: 60,
          cost_usd: 1,
          p50_ms: 200,
          p95_ms: 300,
          is_partial: false,
        },
      ],
      next_cursor: null,
    })
    const { buckets } = await stats(records, { bucket: 'day' })
    expect(buckets).to.have.length(1)
    expect(buckets[0]).to.deep.include({
      start: '2026-11-22T00:00:00.000Z',
      runs: 6,
      failed: 2,
      p50_ms: 100,
      p95_ms: 300,
    })
  })

  it('percentiles are durations that occurred, and null while nothing has ended', async () => {
    const hundred = Array.from({ length: 100 }, (_, i) => ended(i, 100 - i))
    const [bucket] = (await stats(hundred)).buckets
    expect([bucket?.p50_ms, bucket?.p95_ms]).to.deep.equal([50, 95])
    const [open] = (await stats([at(0)])).buckets
    expect(open).to.include({ runs: 1, failed: 0, p50_ms: null, p95_ms: null })
  })

  it('asks for the runs of the flow only, and for no evaluations', async () => {
    const { dispatches, seen } = listing([ended(0, 1)])
    await statsOf(dispatches, TENANT, { ...QUERY, flow: 'invoices' })
    expect([[...seen.flows], [...seen.kinds]]).to.deep.equal([['invoices'], ['run']])
  })

  it('pages of any size show each hour once and whole', async () => {
    const records = Array.from({ length: 1_200 }, (_, i) => ended(-i * 60_000, 5))
    for (const limit of [1, 3, 20]) {
      const found: number[] = []
      let cursor: string | undefined
      do {
        const page = await stats(records, { limit, cursor })
        expect(page.buckets.length).to.be.within(1, limit)
        found.push(...page.buckets.map(({ runs }) => runs))
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      expect(found).to.deep.equal([1, ...Array.from({ length: 19 }, () => 60), 59])
    }
  })

  it('an hour that one request cannot finish comes first on the next page', async () => {
    const earlier = Array.from({ length: 15_000 }, () => ended(-HOUR_MS, 1))
    const later = Array.from({ length: 6_000 }, () => ended(0, 1))
    const first = await stats([...later, ...earlier])
    expect(first.buckets.map(({ runs, is_partial }) => [runs, is_partial])).to.deep.equal([[6_000, false]])
    const second = await stats([...later, ...earlier], { cursor: first.next_cursor ?? '' })
    expect(second.buckets.map(({ runs, is_partial }) => [runs, is_partial])).to.deep.equal([[15_000, false]])
    expect(second.next_cursor).to.equal(null)
  })

  it('an hour that alone has more than 20,000 is partial, and the next page goes on behind it', async () => {
    const many = Array.from({ length: 21_000 }, () => ended(0, 1))
    const first = await stats([...many, ended(-HOUR_MS, 7)])
    expect(first.buckets.map(({ runs, is_partial }) => [runs, is_partial])).to.deep.equal([[20_000, true]])
    const second = await stats([...many, ended(-HOUR_MS, 7)], { cursor: first.next_cursor ?? '' })
    expect(second.buckets.map(({ runs, p50_ms }) => [runs, p50_ms])).to.deep.equal([[1, 7]])
    expect(second.next_cursor).to.equal(null)
  })
})
