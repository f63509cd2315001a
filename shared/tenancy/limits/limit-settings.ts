import type { PriceOf } from '../../agent/providers/port.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { type Limits, NO_LIMITS, type TenantLimits } from '../tenant-config/config.ts'
import type { LiveConfigs } from '../tenant-config/live-configs.ts'
import type { Budgets } from './budgets.ts'
import { type Ceilings, eachLimit, effectiveLimits, excesses } from './ceilings.ts'
import { type RunPlaces } from './port.ts'
import { type LimitWarning, type ServerModel, unpricedWarnings } from './unpriced.ts'

/** The limits that apply to a tenant, the operator's ceiling, and the tenant's usage. `resets_at` is in ISO 8601. */
export type LimitsView = TenantLimits & {
  ceiling: Limits
  used: { concurrent_runs: number; tokens: number; cost_usd: number; resets_at: string }
}

export type LimitSettingsDeps = {
  configs: Pick<LiveConfigs, 'stored' | 'update'>
  budgets: Pick<Budgets, 'today'>
  places: Pick<RunPlaces, 'count'>
  ceilings: Pick<Ceilings, 'of'>
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

  /** Replaces all limits; a limit that is left out is limited only by the ceiling. Throws `invalid_request` for a limit above its ceiling. */
  async put(tenant: TenantId, body: Partial<TenantLimits>): Promise<LimitsView & { warnings?: LimitWarning[] }> {
    const { customers, ...own } = { ...NO_LIMITS, ...body }
    const limits: TenantLimits = { ...eachLimit((name) => own[name]), ...(customers && { customers }) }
    refuseExcess(limits, this.#deps.ceilings.of(tenant))
    const config = await this.#deps.configs.update(tenant, (before) => ({ ...before, limits }))
    const view = await this.#viewOf(tenant, limits)
    const warnings = unpricedWarnings(view, config, this.#deps)
    return { ...view, ...(warnings.length > 0 && { warnings }) }
  }

  async #viewOf(tenant: TenantId, own: TenantLimits): Promise<LimitsView> {
    const { budgets, places, ceilings } = this.#deps
    const ceiling = ceilings.of(tenant)
    const limits = effectiveLimits(own, ceiling)
    const [{ tokens, costUsd, resetsAt }, concurrent_runs] = await Promise.all([
      budgets.today(tenant),
      limits.concurrent_runs === null ? 0 : places.count(tenant),
    ])
    const used = { concurrent_runs, tokens, cost_usd: costUsd, resets_at: resetsAt.toISOString() }
    return { ...limits, ceiling, used }
  }
}

function refuseExcess(limits: Limits, ceiling: Limits): void {
  const problems = excesses(limits, ceiling).map((name) => ({
    param: `/${name}`,
    message: `${name} may be at most ${ceiling[name]}: the operator of this server allows this tenant no more`,
  }))
  const [first] = problems
  if (first) throw invalidRequest(first.message, { param: first.param, ...(problems.length > 1 && { problems }) })
}
