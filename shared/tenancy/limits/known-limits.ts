import { createCache } from '../../kernel/cache.ts'
import { AppError } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { TenantLimits } from '../tenant-config/config.ts'
import type { LiveConfigs } from '../tenant-config/live-configs.ts'
import { type Ceilings, effectiveLimits, NO_CEILINGS } from './ceilings.ts'

const MAX_TENANTS = 10_000
const STORE_RETRY_SECS = 2

/**
 * The limits that apply to tenants, as known to this process. While the store is away the last read ones apply. The
 * operator's ceilings apply at once, whatever a tenant has stored.
 */
export class KnownLimits {
  readonly #configs: Pick<LiveConfigs, 'peek' | 'get'>
  readonly #ceilings: Pick<Ceilings, 'of'>
  /** As the tenants have stored them. */
  readonly #last = createCache<TenantId, TenantLimits>(MAX_TENANTS)

  constructor(configs: Pick<LiveConfigs, 'peek' | 'get'>, ceilings: Pick<Ceilings, 'of'> = NO_CEILINGS) {
    this.#configs = configs
    this.#ceilings = ceilings
  }

  /** Rejects with `unavailable` when the limits must be read and the store does not answer: an unknown limit does not mean that there is none. */
  of(tenant: TenantId): TenantLimits | Promise<TenantLimits> {
    return this.peek(tenant) ?? this.#read(tenant)
  }

  /** The limits, if the tenant's configuration is in memory. */
  peek(tenant: TenantId): TenantLimits | undefined {
    const config = this.#configs.peek(tenant)
    return config && this.#remember(tenant, config.limits)
  }

  async #read(tenant: TenantId): Promise<TenantLimits> {
    try {
      return this.#remember(tenant, (await this.#configs.get(tenant)).limits)
    } catch (cause) {
      const last = this.#last.get(tenant)
      if (last) return this.#effective(tenant, last)
      throw unreadable(cause)
    }
  }

  #remember(tenant: TenantId, limits: TenantLimits): TenantLimits {
    if (this.#last.get(tenant) !== limits) this.#last.set(tenant, limits)
    return this.#effective(tenant, limits)
  }

  #effective(tenant: TenantId, limits: TenantLimits): TenantLimits {
    return effectiveLimits(limits, this.#ceilings.of(tenant))
  }
}

const unreadable = (cause: unknown) =>
  new AppError('unavailable', 'the limits of this tenant cannot be read at the moment; try again', {
    code: 'storage_unavailable',
    retryAfterSecs: STORE_RETRY_SECS,
    cause,
  })
