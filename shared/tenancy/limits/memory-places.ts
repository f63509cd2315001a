import type { TenantId } from '../../kernel/tenant.ts'
import { PLACE_MS, type RunPlaces } from './port.ts'

/** The places of the standalone form. */
export class MemoryRunPlaces implements RunPlaces {
  readonly #now: () => number
  /** The times at which the places of each tenant's runs are free again. */
  readonly #tenants = new Map<TenantId, Map<string, number>>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  async take(tenant: TenantId, runId: string, limit: number): Promise<boolean> {
    const places = this.#placesOf(tenant)
    if (!places.has(runId) && places.size >= limit) return false
    this.#keep(tenant, places.set(runId, this.#now() + PLACE_MS))
    return true
  }

  async renew(tenant: TenantId, runIds: readonly string[]): Promise<void> {
    const places = this.#placesOf(tenant)
    for (const runId of runIds) places.set(runId, this.#now() + PLACE_MS)
    this.#keep(tenant, places)
  }

  async release(tenant: TenantId, runId: string): Promise<void> {
    const places = this.#placesOf(tenant)
    places.delete(runId)
    this.#keep(tenant, places)
  }

  async count(tenant: TenantId): Promise<number> {
    return this.#placesOf(tenant).size
  }

  #placesOf(tenant: TenantId): Map<string, number> {
    const places = this.#tenants.get(tenant) ?? new Map<string, number>()
    for (const [runId, until] of places) if (until <= this.#now()) places.delete(runId)
    return places
  }

  #keep(tenant: TenantId, places: Map<string, number>): void {
    if (places.size === 0) this.#tenants.delete(tenant)
    else this.#tenants.set(tenant, places)
  }
}
