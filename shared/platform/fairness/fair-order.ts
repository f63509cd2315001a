import type { TenantId } from '../../kernel/tenant.ts'

/** Above this number, tenants without a waiting job lose their places to others. */
const MAX_PLACES = 1_000

/** A job of a tenant. `addedAt` is in milliseconds since 1970. */
type Waiting = { job: { id: string; tenant: TenantId }; addedAt: number }

/**
 * Jobs that wait. The tenants form a ring in the order of their arrival, and take turns: the next job is the first job of the tenant after
 * the one that was served last.
 */
export class FairOrder<T extends Waiting> {
  readonly #places = new Map<TenantId, number>()
  readonly #waiting = new Map<TenantId, Map<string, T>>()
  readonly #tenantOf = new Map<string, TenantId>()
  #lastPlace = 0
  #servedPlace = 0

  get size(): number {
    return this.#tenantOf.size
  }

  countOf(tenant: TenantId): number {
    return this.#waiting.get(tenant)?.size ?? 0
  }

  /** When the longest-waiting job was added, in milliseconds since 1970; `undefined` when none waits. */
  get oldestAt(): number | undefined {
    const firsts = [...this.#waiting.values()].flatMap((jobs) => firstOf(jobs) ?? [])
    return firsts.length === 0 ? undefined : firsts.reduce((oldest, { addedAt }) => Math.min(oldest, addedAt), Infinity)
  }

  has(id: string): boolean {
    return this.#tenantOf.has(id)
  }

  /** Changes nothing when the job already waits. A job that was taken and waits again becomes the first of its tenant. */
  push(stored: T, { isAgain = false }: { isAgain?: boolean } = {}): void {
    const { id, tenant } = stored.job
    if (this.#tenantOf.has(id)) return
    const others = this.#waiting.get(tenant) ?? new Map<string, T>()
    this.#waiting.set(tenant, isAgain ? new Map([[id, stored], ...others]) : others.set(id, stored))
    this.#tenantOf.set(id, tenant)
    if (!this.#places.has(tenant)) this.#places.set(tenant, ++this.#lastPlace)
  }

  /** Returns the job whose turn it is, and leaves it in the order. Tenants that `comesFirst` chooses go before all others. */
  next(comesFirst: (tenant: TenantId) => boolean = () => true): T | undefined {
    const waiting = [...this.#waiting.keys()]
    const first = waiting.filter(comesFirst)
    const candidates = first.length > 0 ? first : waiting
    const turns = candidates.map((tenant) => ({ tenant, turn: this.#turnOf(tenant) }))
    const [next, ...others] = turns
    if (!next) return undefined
    const { tenant } = others.reduce((best, each) => (each.turn < best.turn ? each : best), next)
    return firstOf(this.#waiting.get(tenant))
  }

  /** Takes the job of `next`. */
  take({ job: { id, tenant } }: T): void {
    this.#servedPlace = this.#places.get(tenant) ?? 0
    this.remove(id)
  }

  remove(id: string): void {
    const tenant = this.#tenantOf.get(id)
    if (tenant === undefined) return
    this.#tenantOf.delete(id)
    const jobs = this.#waiting.get(tenant)
    jobs?.delete(id)
    if (jobs?.size === 0) this.#waiting.delete(tenant)
    if (this.size === 0 && this.#places.size > MAX_PLACES) this.#places.clear()
  }

  clear(): void {
    this.#waiting.clear()
    this.#tenantOf.clear()
    this.#places.clear()
  }

  /** Grows with the distance from the tenant that was served last. */
  #turnOf(tenant: TenantId): number {
    const place = this.#places.get(tenant) ?? 0
    return place > this.#servedPlace ? place : place + this.#lastPlace
  }
}

const firstOf = <T>(jobs: ReadonlyMap<string, T> | undefined): T | undefined => jobs?.values().next().value
