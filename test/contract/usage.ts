import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { UsageAddition, UsageRows, UsageStore, UsageSums } from '../../shared/tenancy/usage/port.ts'
import { createUsageStore, MAX_KEYS } from '../../shared/tenancy/usage/store/usage.ts'
import { REST } from '../../shared/tenancy/usage/sums.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import type { OpenStore } from './store.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const DAY_MS = 86_400_000
const NOON = '2026-11-22T12:00:00.000Z'

const SUMS: UsageSums = {
  runs: 1,
  failed: 0,
  invalid: 0,
  input_tokens: 10,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 5,
  cost_usd: 0.5,
  durations: new Map([[40, 1]]),
}
const rowsOf = (...keys: string[]): UsageRows => new Map(keys.map((key) => [key, SUMS]))

/** The tests of the usage of tenants, which every store passes. */
export function usageContract(open: OpenStore): void {
  let usage: UsageStore
  let clock = Date.parse(NOON)
  let processes = 0
  const store = useOpened(() => open(COLLECTIONS, () => clock))
  before(async () => {
    usage = createUsageStore(store)
  })

  const addition = (rows: UsageRows, more: Partial<UsageAddition> = {}): UsageAddition => ({
    ...{ by: 'model', bucket: 'hour', start: NOON, process: `p${++processes}`, number: 1, rows },
    ...more,
  })
  const read = async (tenant: TenantId, start: string, more: object = {}) => {
    const range = { by: 'model', bucket: 'hour', from: start, until: start, limit: 10 } as const
    return (await usage.read(tenant, { ...range, ...more }))[0]?.rows ?? new Map<string, UsageSums>()
  }

  it('what several processes add at the same time is summed up, for one tenant only', async () => {
    const add = async (): Promise<void> => {
      const added = addition(rowsOf('m'))
      while (!(await usage.add(TENANT, added)));
    }
    await Promise.all(Array.from({ length: 12 }, add))
    const expected = {
      runs: 12,
      failed: 0,
      invalid: 0,
      input_tokens: 120,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: 60,
      cost_usd: 6,
    }
    const sums = (await read(TENANT, NOON)).get('m')
    expect(sums).to.deep.equal({ ...expected, durations: new Map([[40, 12]]) })
    expect(await read(OTHER, NOON)).to.have.property('size', 0)
    expect(await read(TENANT, NOON, { bucket: 'day' })).to.have.property('size', 0)
    expect(await read(TENANT, NOON, { by: 'kind' })).to.have.property('size', 0)
  })

  it('an addition that is repeated counts once, also after additions of others', async () => {
    const start = '2026-11-22T13:00:00.000Z'
    const first = addition(rowsOf('m'), { start })
    for (const added of [first, first, addition(rowsOf('m'), { start }), first, { ...first, number: 2 }])
      expect(await usage.add(TENANT, added)).to.equal(true)
    expect((await read(TENANT, start)).get('m')).to.include({ runs: 3 })
  })

  it('the first values have rows of their own, also one that is called `other`, and later ones are added up', async () => {
    const start = '2026-11-22T14:00:00.000Z'
    const many = Array.from({ length: MAX_KEYS - 2 }, (_, i) => `m${i}`)
    await usage.add(TENANT, addition(rowsOf('other', ...many), { start }))
    await usage.add(TENANT, addition(rowsOf('last', 'late', 'later', 'm0'), { start }))
    const rows = await read(TENANT, start)
    expect(rows).to.have.property('size', MAX_KEYS + 1)
    const runs = ['last', 'other', REST, 'm0'].map((key) => rows.get(key)?.runs)
    expect(runs).to.deep.equal([1, 1, 2, 2])
    expect(rows.has('late')).to.equal(false)
  })

  it('values of any text are rows', async () => {
    const start = '2026-11-22T15:00:00.000Z'
    const keys = ['__proto__', '$a.b', '', 'x'.repeat(1_500)]
    await usage.add(TENANT, addition(rowsOf(...keys), { start }))
    expect([...(await read(TENANT, start)).keys()]).to.deep.equal(keys)
  })

  it('D21e: of combinations the first 500 have rows of their own', async () => {
    const many = Array.from({ length: 501 }, (_, i) => `["m","run","","${i}",""]`)
    await usage.add(TENANT, addition(rowsOf(...many), { by: 'crossed' }))
    const rows = await read(TENANT, NOON, { by: 'crossed' })
    expect([rows.size, rows.get(REST)?.runs]).to.deep.equal([501, 1])
  })

  it('places are read in the order of time, from one to another, and at most as many as wanted', async () => {
    const starts = [16, 17, 18, 19].map((hour) => `2026-11-23T${hour}:00:00.000Z`)
    for (const start of starts.toReversed()) await usage.add(TENANT, addition(rowsOf('m'), { start }))
    const range = { by: 'model', bucket: 'hour', from: String(starts[1]), until: String(starts[3]) } as const
    const found = async (limit: number) => (await usage.read(TENANT, { ...range, limit })).map(({ start }) => start)
    expect(await found(10)).to.deep.equal(starts.slice(1))
    expect(await found(2)).to.deep.equal(starts.slice(1, 3))
  })

  it('the tenants of a day are listed by name, those whose runs have ended on it', async () => {
    const start = '2026-11-25T00:00:00.000Z'
    const add = (tenant: string, place: Partial<UsageAddition>) =>
      usage.add(tenantId(tenant), addition(rowsOf('m'), { start, ...place }))
    for (const tenant of ['t_c', 't_a', 't_b', 't_a']) await add(tenant, { bucket: 'day' })
    await add('t_d', { bucket: 'hour' })
    await add('t_e', { bucket: 'day', start: '2026-11-26T00:00:00.000Z' })
    expect(await usage.tenants(start, { after: '', limit: 10 })).to.deep.equal(['t_a', 't_b', 't_c'])
    expect(await usage.tenants(start, { after: 't_a', limit: 1 })).to.deep.equal(['t_b'])
  })

  it('D21d: hours are kept for 35 days, days for 400', async () => {
    const [hour, day] = ['2026-11-24T00:00:00.000Z', '2026-11-24T00:00:00.000Z']
    clock = Date.parse(day)
    await usage.add(TENANT, addition(rowsOf('m'), { start: hour }))
    await usage.add(TENANT, addition(rowsOf('m'), { bucket: 'day', start: day }))
    const sizes = async () => [(await read(TENANT, hour)).size, (await read(TENANT, day, { bucket: 'day' })).size]
    clock = Date.parse(day) + 35 * DAY_MS - 1
    expect(await sizes()).to.deep.equal([1, 1])
    clock = Date.parse(day) + 35 * DAY_MS + 1
    expect(await sizes()).to.deep.equal([0, 1])
    clock = Date.parse(day) + 400 * DAY_MS + 1
    expect(await sizes()).to.deep.equal([0, 0])
  })
}
