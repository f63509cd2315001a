import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { KnownLimits } from '../../../shared/tenancy/limits/known-limits.ts'
import { LimitSettings } from '../../../shared/tenancy/limits/limit-settings.ts'
import { MemoryRunPlaces } from '../../../shared/tenancy/limits/memory-places.ts'
import {
  EMPTY_CONFIG,
  type Limits,
  NO_LIMITS,
  type TenantConfig,
} from '../../../shared/tenancy/tenant-config/config.ts'
import { tenantId } from '../../support/tenant.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const LIMITS = { ...NO_LIMITS, requests_per_minute: 1, concurrent_runs: 2, tokens_per_day: 3, usd_per_day: 4 }

describe('the limits of a tenant', () => {
  it('are those that were read last while the store is away, and unavailable where nothing was read', async () => {
    let isAway = false
    const known = new KnownLimits({
      peek: () => undefined,
      async get(): Promise<TenantConfig> {
        if (isAway) throw new Error('away')
        return { ...EMPTY_CONFIG, limits: LIMITS }
      },
    })
    expect(await known.of(TENANT)).to.deep.equal(LIMITS)
    isAway = true
    expect(await known.of(TENANT)).to.deep.equal(LIMITS)
    const refusal = await Promise.resolve(known.of(OTHER)).catch((cause: unknown) => cause)
    expect(refusal).to.be.instanceOf(AppError).with.property('kind', 'unavailable')
    expect(refusal).to.include({ code: 'storage_unavailable', retryAfterSecs: 2 })
  })

  it('are the ceiling where the tenant has none or a higher one of its own, also while the store is away', async () => {
    let config: TenantConfig | undefined = { ...EMPTY_CONFIG, limits: { ...LIMITS, usd_per_day: null } }
    let ceiling: Limits = { ...NO_LIMITS, requests_per_minute: 5, tokens_per_day: 2, usd_per_day: 0.5 }
    const get = () => Promise.reject(new Error('away'))
    const known = new KnownLimits(
      { peek: () => config, get },
      { of: (tenant) => (tenant === TENANT ? ceiling : NO_LIMITS) },
    )
    const lowest = { ...NO_LIMITS, requests_per_minute: 1, concurrent_runs: 2, tokens_per_day: 2, usd_per_day: 0.5 }
    expect(await known.of(TENANT)).to.deep.equal(lowest)
    expect(await known.of(OTHER)).to.deep.equal(config.limits)
    config = undefined
    expect(await known.of(TENANT)).to.deep.equal(lowest)
    ceiling = NO_LIMITS
    expect(await known.of(TENANT)).to.deep.equal({ ...LIMITS, usd_per_day: null })
  })

  it('are known at once where the configuration is kept', () => {
    const config = { ...EMPTY_CONFIG, limits: LIMITS }
    expect(new KnownLimits({ peek: () => config, get: async () => config }).of(TENANT)).to.deep.equal(LIMITS)
  })

  it('are shown with what is used of them, and a PUT replaces all of them but nothing else', async () => {
    let config: TenantConfig = { ...EMPTY_CONFIG, audit: { store_payloads: false, retention_days: 7 } }
    const { audit } = config
    const places = new MemoryRunPlaces(() => 0)
    await places.take({ tenant: TENANT, runId: 'run_1' }, { tenant: 1, customer: null })
    let ceiling = NO_LIMITS
    const ceilings = { of: () => ceiling }
    let isPriced = true
    const settings = new LimitSettings({
      configs: {
        stored: async () => config,
        update: async (_tenant, change) => (config = change(config)),
      },
      budgets: { today: async () => ({ tokens: 5, costUsd: 0.5, resetsAt: new Date('2026-11-23T00:00:00.000Z') }) },
      places,
      ceilings,
      priceOf: () => (isPriced ? 0 : undefined),
      serverModels: [{ type: 'openai', model: 'm' }],
    })
    const used = { concurrent_runs: 1, tokens: 5, cost_usd: 0.5, resets_at: '2026-11-23T00:00:00.000Z' }
    expect(await settings.put(TENANT, LIMITS)).to.deep.equal({ ...LIMITS, ceiling, used })
    expect(await settings.get(TENANT)).to.deep.equal({ ...LIMITS, ceiling, used })
    const next = { ...NO_LIMITS, tokens_per_day: 9 }
    const without = { ...used, concurrent_runs: 0 }
    expect(await settings.put(TENANT, { tokens_per_day: 9 })).to.deep.equal({ ...next, ceiling, used: without })
    expect(config).to.deep.equal({ ...EMPTY_CONFIG, audit, limits: next })
    ceiling = { ...NO_LIMITS, concurrent_runs: 3, tokens_per_day: 5 }
    const lowered = { ...ceiling, ceiling, used }
    expect(await settings.get(TENANT), 'a stored limit above a later ceiling').to.deep.equal(lowered)
    const refusal = await settings
      .put(TENANT, { tokens_per_day: 6, concurrent_runs: 4 })
      .catch((cause: unknown) => cause)
    expect(refusal).to.include({ kind: 'invalid_request', param: '/concurrent_runs' })
    expect(refusal).to.have.property('problems').with.length(2)
    const one = await settings.put(TENANT, { tokens_per_day: 6 }).catch((cause: unknown) => cause)
    expect(one).to.include({ kind: 'invalid_request', param: '/tokens_per_day', problems: undefined })
    expect(config.limits, 'a refused change').to.deep.equal(next)
    expect(await settings.put(TENANT, { tokens_per_day: 5 })).to.deep.equal(lowered)
    isPriced = false
    const { warnings = [] } = await settings.put(TENANT, { usd_per_day: 5 })
    expect(warnings.map(({ code, param }) => [code, param])).to.deep.equal([['price_unknown', '/usd_per_day']])
  })
})
