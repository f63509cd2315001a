import { expect } from 'chai'
import { durationClass } from '../../../shared/tenancy/usage/durations.ts'
import type { UsageRange, UsageRows, UsageSums } from '../../../shared/tenancy/usage/port.ts'
import { UsageReport } from '../../../shared/tenancy/usage/report.ts'
import { useContract } from '../described.ts'
import { useGateways } from '../setup.ts'

const NOW = new Date('2026-11-22T10:30:00.000Z')

const sums = (runs: number): UsageSums => ({
  ...{
    runs,
    failed: 0,
    invalid: 0,
    input_tokens: runs,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: runs,
    cost_usd: runs,
  },
  durations: new Map([[durationClass(1_000), runs]]),
})

type Places = readonly { start: string; rows: UsageRows }[]
type Page = {
  rows: { bucket: string; key: string | null; keys?: (string | null)[]; runs: number }[]
  next_cursor: string | null
}

describe('the usage of a tenant', () => {
  const start = useGateways()
  const described = useContract()

  /** A gateway whose store holds these rows, and the ranges that it was asked for. */
  async function open(places: Places | ((by: string) => Places)) {
    const asked: UsageRange[] = []
    const read = async (_tenant: unknown, range: UsageRange) => {
      asked.push(range)
      const all = typeof places === 'function' ? places(range.by) : places
      return all.filter((place) => place.start >= range.from && place.start <= range.until).slice(0, range.limit)
    }
    const { get } = await start({ usage: new UsageReport({ read }, () => NOW) })
    const usage = async (query = '') => (await described('GET', '/usage', await get(`/usage${query}`))) as Page
    return { get, usage, asked }
  }

  it('D21: shows the rows of each day, with percentiles; a run without a value has the key null', async () => {
    const day = '2026-11-21T00:00:00.000Z'
    const { usage } = await open([
      {
        start: day,
        rows: new Map([
          ['m', sums(2)],
          ['', sums(1)],
        ]),
      },
    ])
    const { rows, next_cursor } = await usage()
    expect(next_cursor).to.equal(null)
    expect(rows.map(({ bucket, key, runs }) => [bucket, key, runs])).to.deep.equal([
      [day, null, 1],
      [day, 'm', 2],
    ])
    expect(rows[1]).to.deep.include({
      failed: 0,
      invalid: 0,
      input_tokens: 2,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: 2,
      cost_usd: 2,
    })
    expect(rows[1]).to.have.property('p50_ms').within(800, 1_200)
    expect(rows[1]).to.have.property('p95_ms').within(800, 1_200)
    expect(rows[1]).to.deep.include({ durations: [{ up_to_ms: 1_024, runs: 2 }] })
    expect(rows[1]).not.to.have.property('keys')
  })

  it('D21: shows the last 30 days or 24 hours by default, and otherwise those of from up to to', async () => {
    const { usage, asked } = await open([])
    await usage()
    await usage('?bucket=hour&by=kind')
    await usage('?bucket=hour&from=2026-11-20T10:20:00Z&to=2026-11-20T12:00:00Z')
    await usage('?from=2026-11-20&to=2026-11-21T00:00:01Z')
    const ranges = asked.map(({ by, bucket, from, until }) => [by, bucket, from.slice(0, 13), until.slice(0, 13)])
    expect(ranges).to.deep.equal([
      ['model', 'day', '2026-10-23T00', '2026-11-22T00'],
      ['kind', 'hour', '2026-11-21T10', '2026-11-22T10'],
      ['model', 'hour', '2026-11-20T10', '2026-11-20T11'],
      ['model', 'day', '2026-11-20T00', '2026-11-21T00'],
    ])
  })

  it('D21e: by two dimensions shows both values, page by page, with the sums of the first', async () => {
    const day = '2026-11-21T00:00:00.000Z'
    const combined = (values: string[], runs: number) => [JSON.stringify(values), sums(runs)] as const
    const { usage, asked } = await open((by) => [
      {
        start: day,
        rows: new Map(
          by === 'crossed'
            ? [combined(['m', 'run', '', 'c-1', 's'], 2), combined(['m', 'run', '', '', 's'], 1)]
            : [['m', sums(4)]],
        ),
      },
    ])
    const first = await usage('?by=model,customer&limit=2')
    const rest = await usage(`?by=model,customer&limit=2&cursor=${first.next_cursor}`)
    const shown = [...first.rows, ...rest.rows].map(({ key, keys, runs }) => [key, keys, runs])
    expect(shown).to.deep.equal([
      ['m', ['m', null], 1],
      ['m', ['m', 'c-1'], 2],
      ['m', ['m', 'other'], 1],
    ])
    expect(rest.next_cursor).to.equal(null)
    expect(asked.map(({ by }) => by)).to.deep.equal(['model', 'crossed', 'model', 'crossed'])
  })

  it('D2.11: a wrong value is 400 and names the parameter', async () => {
    const { get, asked } = await open([])
    const cursorOf = (...values: unknown[]) => Buffer.from(JSON.stringify(values)).toString('base64url')
    for (const [query, param] of [
      ['by=price', '/by'],
      ['by=metadata', '/by'],
      ['by=metadata.', '/by'],
      ['by=metadata.a.b', '/by'],
      ['by=model,model', '/by'],
      ['by=model,kind,flow', '/by'],
      ['by=model,metadata.team', '/by'],
      ['by=model,', '/by'],
      ['by=crossed', '/by'],
      ['by=metadata.__proto__%00', '/by'],
      ['bucket=week', '/bucket'],
      ['by=model&by=kind', '/by'],
      ['from=yesterday', '/from'],
      ['to=2026-13-01', '/to'],
      ['from=2026-11-22&to=2026-11-22', '/from'],
      ['from=2027-01-01', '/from'],
      ['limit=0', '/limit'],
      ['cursor=abc', '/cursor'],
      [`cursor=${cursorOf('soon', 'm')}`, '/cursor'],
      [`cursor=${cursorOf('2026-11-22', 'm')}`, '/cursor'],
    ] as const) {
      const response = await get(`/usage?${query}`)
      expect(response.status, query).to.equal(400)
      expect(await described('GET', '/usage', response)).to.nested.include({ 'error.param': param })
    }
    expect(asked).to.deep.equal([])
  })

  it('is 503 without a store', async () => {
    const { get } = await start()
    const response = await get('/usage')
    expect(response.status).to.equal(503)
    expect(await described('GET', '/usage', response)).to.nested.include({ 'error.type': 'unavailable_error' })
  })
})
