import type { TenantId } from '../../kernel/tenant.ts'
import { PLACE_MS, type RunPlaces } from './port.ts'

/** The places of the standalone form. */
export function createMemoryRunPlaces(now: () => number = () => performance.now()): RunPlaces {
  const tenants = new Map<TenantId, Map<string, number>>()
  const placesOf = (tenant: TenantId) => {
    const places = tenants.get(tenant) ?? new Map<string, number>()
    for (const [runId, until] of places) if (until <= now()) places.delete(runId)
    return places
  }
  const keep = (tenant: TenantId, places: Map<string, number>) => {
    if (places.size === 0) tenants.delete(tenant)
    else tenants.set(tenant, places)
  }
  return {
    async take(tenant, runId, limit) {
      const places = placesOf(tenant)
      if (!places.has(runId) && places.size >= limit) return false
      keep(tenant, places.set(runId, now() + PLACE_MS))
      return true
    },
    async renew(tenant, runIds) {
      const places = placesOf(tenant)
      for (const runId of runIds) places.set(runId, now() + PLACE_MS)
      keep(tenant, places)
    },
    async release(tenant, runId) {
      const places = placesOf(tenant)
      places.delete(runId)
      keep(tenant, places)
    },
    count: async (tenant) => placesOf(tenant).size,
  }
}
