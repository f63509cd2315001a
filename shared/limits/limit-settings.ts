import type { PriceOf } from '../providers/port.ts'
import type { TenantId } from '../tenant.ts'
import type { LiveConfigs } from '../tenant-config/live-configs.ts'
import type { Budgets } from './budgets.ts'
import { type Limits, NO_LIMITS, type RunPlaces } from './port.ts'
import { type LimitWarning, type ServerModel, unpricedWarnings } from './unpriced.ts'

/** The limits of a tenant, and what it has used of them. `resets_at` is in ISO 8601. */
export type LimitsView = Limits & {
  used: { concurrent_runs: number; tokens: number; cost_usd: number; resets_at: string }
}

export type LimitSettingsDeps = {
  configs: Pick<LiveConfigs, 'stored' | 'update'>
  budgets: Pick<Budgets, 'today'>
  places: Pick<RunPlaces, 'count'>
  priceOf: PriceOf
  serverModels: readonly ServerModel[]
}

/** Reads and changes the limits of tenants. */
export class LimitSettings {
  readonly #deps: LimitSettingsDeps

  constructor(deps: LimitSettingsDeps) {
    this.#deps = deps
  }

  async get(tenant: TenantId): Promise<LimitsView> {
    const { limits } = await this.#deps.configs.stored(tenant)
    return this.#viewOf(tenant, limits)
  }

  /** Replaces all limits: what is left out is not limited. */
  async put(tenant: TenantId, body: Partial<Limits>): Promise<LimitsView & { warnings?: LimitWarning[] }> {
    const { requests_per_minute, concurrent_runs, tokens_per_day, usd_per_day } = { ...NO_LIMITS, ...body }
    const limits: Limits = { requests_per_minute, concurrent_runs, tokens_per_day, usd_per_day }
    const config = await this.#deps.configs.update(tenant, (before) => ({ ...before, limits }))
    const warnings = unpricedWarnings(limits, config, this.#deps)
    return { ...(await this.#viewOf(tenant, limits)), ...(warnings.length > 0 && { warnings }) }
  }

  async #viewOf(tenant: TenantId, limits: Limits): Promise<LimitsView> {
    const { budgets, places } = this.#deps
    const [{ tokens, costUsd, resetsAt }, concurrent_runs] = await Promise.all([
      budgets.today(tenant),
      limits.concurrent_runs === null ? 0 : places.count(tenant),
    ])
    return { ...limits, used: { concurrent_runs, tokens, cost_usd: costUsd, resets_at: resetsAt.toISOString() } }
  }
}
