import { LRUCache } from 'lru-cache'
import type { TenantId } from '../tenant.ts'
import type { LiveConfigs } from '../tenant-config/live-configs.ts'
import { type Limits, NO_LIMITS } from './port.ts'

const MAX_TENANTS = 10_000

/** The limits of tenants as this process knows them. While the store is away they are those that were read last, or none. */
export class KnownLimits {
  readonly #configs: Pick<LiveConfigs, 'peek' | 'get'>
  readonly #last = new LRUCache<TenantId, Limits>({ max: MAX_TENANTS })

  constructor(configs: Pick<LiveConfigs, 'peek' | 'get'>) {
    this.#configs = configs
  }

  of(tenant: TenantId): Limits | Promise<Limits> {
    const config = this.#configs.peek(tenant)
    return config ? this.#remember(tenant, config.limits) : this.#read(tenant)
  }

  async #read(tenant: TenantId): Promise<Limits> {
    try {
      return this.#remember(tenant, (await this.#configs.get(tenant)).limits)
    } catch {
      return this.#last.get(tenant) ?? NO_LIMITS
    }
  }

  #remember(tenant: TenantId, limits: Limits): Limits {
    this.#last.set(tenant, limits)
    return limits
  }
}
