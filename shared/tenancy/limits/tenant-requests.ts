import type { TenantId } from '../../kernel/tenant.ts'
import type { RateLimiter, Taken } from '../rate/port.ts'
import type { TenantLimits } from '../tenant-config/config.ts'
import type { KnownLimits } from './known-limits.ts'

/** The counts of one client or tenant, each against a limit of the same size. */
export type Bucket = 'all' | 'control' | 'answers'

/** Counts the requests of tenants, and the ticks of their schedules, against their own limit, in all processes together. */
export class TenantRequests {
  readonly #known: Pick<KnownLimits, 'of'>
  readonly #limiter: RateLimiter

  constructor(known: Pick<KnownLimits, 'of'>, limiter: RateLimiter) {
    this.#known = known
    this.#limiter = limiter
  }

  /**
   * Counts one request; control calls, and answers in dialects, are counted separately (D17a). `undefined` for a tenant
   * without such a limit. Rejects with `unavailable` when the limits cannot be read.
   */
  take(tenant: TenantId, kind: Bucket = 'all'): Promise<Taken | undefined> | undefined {
    const known = this.#known.of(tenant)
    const hasNone = !(known instanceof Promise) && known.requests_per_minute === null
    return hasNone ? undefined : this.#take(tenant, kind, known)
  }

  async #take(tenant: TenantId, kind: Bucket, known: TenantLimits | Promise<TenantLimits>): Promise<Taken | undefined> {
    const { requests_per_minute: perMinute } = await known
    const key = kind === 'all' ? `tenant:${tenant}` : `${kind}:${tenant}`
    return perMinute === null ? undefined : this.#limiter.take(key, perMinute)
  }
}
