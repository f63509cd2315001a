import { expect } from 'chai'
import type { TenantLoad } from '../../../shared/cluster/commands/tenant-loads.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { NO_LIMITS } from '../../../shared/tenancy/tenant-config/config.ts'
import type { UsageRows, UsageSums } from '../../../shared/tenancy/usage/port.ts'
import { listTenants, type TenantsDeps } from '../../../shared/tenancy/usage/tenants.ts'
import { tenantId } from '../../support/tenant.ts'

const DAY = '2026-11-22T00:00:00.000Z'
const NOW = () => new Date('2026-11-22T10:30:00.000Z')
const sums = (runs: number): UsageSums => ({
  ...{
    runs,
    failed: 1,
    invalid: 0,
    input_tokens: 10,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: 5,
    cost_usd: 0.5,
  },
  durations: new Map(),
})
const loadOf = (name: string): TenantLoad => ({
  ...{ tenant: tenantId(name), live_runs: 2, waiting_runs: 1, sessions: 3 },
})
const NOTHING = { live_runs: 0, waiting_runs: 0, sessions: 0 }

describe('the list of tenants', () => {
  /** Tenants with live runs, and the rows of those that have used something today. */
  function depsOf(live: readonly string[], used: Record<string, UsageRows>): TenantsDeps {
    const behind = <T extends string>(names: readonly T[], { after, limit }: { after: string; limit: number }) =>
      names
        .toSorted()
        .filter((name) => name > after)
        .slice(0, limit)
    return {
      loads: async (range) => ({ tenants: behind(live, range).map(loadOf), isIncomplete: false }),
      usage: {
        tenants: async (day, range) => (day === DAY ? (behind(Object.keys(used), range) as TenantId[]) : []),
        async read(tenant, { by, bucket, from }) {
          const rows = by === 'kind' && bucket === 'day' && from === DAY ? used[tenant] : undefined
          return rows ? [{ start: DAY, rows }] : []
        },
      },
      limits: undefined,
      now: NOW,
    }
  }

  it('has those with live runs and those that have used something today, with the sums of all kinds', async () => {
    const deps = depsOf(['b', 'c'], {
      a: new Map([
        ['run', sums(3)],
        ['flow', sums(4)],
      ]),
      b: new Map([['run', sums(1)]]),
    })
    const { tenants, next } = await listTenants(deps, { after: '', limit: 10 })
    expect(next).to.equal(null)
    expect(tenants.map(({ tenant }) => tenant)).to.deep.equal(['a', 'b', 'c'])
    const none = { tokens_per_day: null, usd_per_day: null }
    const today = { runs_today: 7, failed_today: 2, tokens_today: 30, usd_today: 1 }
    expect(tenants[0]).to.deep.equal({ tenant: 'a', ...NOTHING, ...today, ...none })
    expect(tenants[1]).to.deep.include({ ...loadOf('b'), runs_today: 1 })
    expect(tenants[2]).to.deep.include({ ...loadOf('c'), runs_today: 0, tokens_today: 0 })
  })

  it('shows the spending that the budget counts, and the budget', async () => {
    const used = { concurrent_runs: 0, tokens: 77, cost_usd: 3, resets_at: DAY }
    const view = { ...NO_LIMITS, tokens_per_day: 100, usd_per_day: 5, ceiling: NO_LIMITS, used }
    const deps = { ...depsOf([], { a: new Map([['run', sums(1)]]) }), limits: { get: async () => view } }
    const { tenants } = await listTenants(deps, { after: '', limit: 10 })
    expect(tenants[0]).to.deep.include({ tokens_today: 77, usd_today: 3, tokens_per_day: 100, usd_per_day: 5 })
  })

  it('comes in pages, each tenant once', async () => {
    const names = Array.from({ length: 30 }, (_, i) => `t${String(i).padStart(2, '0')}`)
    const used = Object.fromEntries(
      names.filter((_, i) => i % 2 === 0).map((name) => [name, new Map([['run', sums(1)]])]),
    )
    const deps = depsOf(
      names.filter((_, i) => i % 3 !== 0 || i % 2 === 1),
      used,
    )
    const seen: string[] = []
    for (let after: string | null = ''; after !== null; ) {
      const page = await listTenants(deps, { after, limit: 13 })
      seen.push(...page.tenants.map(({ tenant }) => tenant))
      after = page.next
    }
    expect(seen).to.deep.equal(names)
  })

  it('has only those with live runs or sessions without a store, and says when it is incomplete', async () => {
    const loads = async () => ({ tenants: [loadOf('a')], isIncomplete: true })
    const page = await listTenants({ loads, usage: undefined, limits: undefined }, { after: '', limit: 10 })
    expect(page).to.deep.include({ isIncomplete: true, next: null })
    expect(page.tenants).to.have.length(1)
  })
})
