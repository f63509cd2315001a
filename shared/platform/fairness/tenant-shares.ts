import type { TenantId } from '../../kernel/tenant.ts'

export type ShareLimits = {
  /** The limit for all tenants together. */
  max: number
  maxPerTenant: number
}

/** How much of one resource of a process is in use, in all and by each tenant. Units are the caller's. */
export class TenantShares {
  readonly #limits: ShareLimits
  readonly #used = new Map<TenantId, number>()
  #total = 0
  /** The total, without the amounts that tenants use above their own limits. */
  #withinShares = 0

  constructor(limits: ShareLimits) {
    this.#limits = limits
  }

  /** Changes how much a tenant uses. A negative amount frees it. */
  add(tenant: TenantId, amount: number): void {
    this.#total += amount
    const before = this.usedBy(tenant)
    const used = before + amount
    const { maxPerTenant } = this.#limits
    this.#withinShares += Math.min(used, maxPerTenant) - Math.min(before, maxPerTenant)
    if (used === 0) this.#used.delete(tenant)
    else this.#used.set(tenant, used)
  }

  usedBy(tenant: TenantId): number {
    return this.#used.get(tenant) ?? 0
  }

  /** Whether `amount` more would exceed the tenant's own limit, if that is smaller than the limit for all. */
  exceedsShare(tenant: TenantId, amount: number): boolean {
    const { max, maxPerTenant } = this.#limits
    return maxPerTenant < max && this.usedBy(tenant) + amount > maxPerTenant
  }

  /** Whether `amount` more would exceed the limit for all. */
  exceedsAll(amount: number): boolean {
    return this.#total + amount > this.#limits.max
  }

  /** Whether `amount` more would exceed the limit for all if no tenant used more than its own limit. */
  exceedsShares(amount: number): boolean {
    return this.#withinShares + amount > this.#limits.max
  }

  /** Which limit `amount` more would exceed: the tenant's own is checked first. */
  exceeded(tenant: TenantId, amount: number): 'tenant' | 'all' | undefined {
    if (this.exceedsShare(tenant, amount)) return 'tenant'
    return this.exceedsAll(amount) ? 'all' : undefined
  }
}
