import type { Priority } from '../../agent/providers/port.ts'
import { createCache } from '../../kernel/cache.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import {
  type LineNews,
  PLACE_MS,
  type PlacedRun,
  type PlaceLimits,
  type RunPlaces,
  type StartLine,
  type TakenPlace,
  usualMs,
  type WaitingStart,
} from './port.ts'
import { BATCH_ITEMS } from './start-order.ts'

/** The times at which the places of runs are free again. */
type Places = Map<string, number>

type Tenant = {
  places: Places
  placesOf: Map<string, Places>
  line: Map<string, WaitingStart>
  turnsOf: Map<string, number>
  lowerAt: number
}

const MAX_TENANTS = 10_000

/** The places of the standalone form, whose process is the only one. */
export class MemoryRunPlaces implements RunPlaces {
  readonly #now: () => number
  readonly #tenants = new Map<TenantId, Tenant>()
  readonly #runMs = createCache<TenantId, number>(MAX_TENANTS)
  /** Until when a place is kept free. */
  readonly #keptUntil = createCache<TenantId, number>(MAX_TENANTS)

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  async take({ tenant: id, runId, customer }: PlacedRun, limits: PlaceLimits, turn?: Priority): Promise<TakenPlace> {
    const tenant = this.#tenantOf(id)
    const counted = limits.customer === null ? undefined : customer
    const answer = (place: TakenPlace['place']) => {
      const waiting = limits.tenant === 1 && !limits.yields ? pressing(tenant.line) : tenant.line.size
      this.#keep(id, tenant)
      return { place, waiting, runMs: this.#runMs.get(id) ?? 0 }
    }
    if (!hasRoom(tenant.places, runId, limits.tenant)) return answer('full')
    if (!hasRoom(placesOf(tenant, counted), runId, limits.customer)) return answer('customer_full')
    if (limits.yields && this.#isKeptFree(id) && !tenant.places.has(runId)) return answer('customer_full')
    if (turn === undefined && tenant.line.size > 0 && !tenant.places.has(runId)) return answer('behind')
    const name = tenant.line.get(runId)?.customer ?? ''
    if (tenant.line.delete(runId)) tenant.turnsOf.set(name, (tenant.turnsOf.get(name) ?? 0) + 1 / (limits.weight ?? 1))
    if (turn !== undefined && turn !== 'interactive') tenant.lowerAt = this.#now()
    hold(tenant, { runId, customer: counted }, this.#now() + PLACE_MS)
    return answer('taken')
  }

  async renew(id: TenantId, runs: readonly PlacedRun[]): Promise<void> {
    const tenant = this.#tenantOf(id)
    for (const run of runs) hold(tenant, run, this.#now() + PLACE_MS)
    this.#keep(id, tenant)
  }

  async release({ tenant: id, runId, customer }: PlacedRun, ranMs?: number): Promise<void> {
    const tenant = this.#tenantOf(id)
    tenant.places.delete(runId)
    placesOf(tenant, customer).delete(runId)
    if (ranMs !== undefined) this.#runMs.set(id, usualMs(this.#runMs.get(id), ranMs))
    this.#keep(id, tenant)
  }

  async keepFree(tenant: TenantId, ms: number): Promise<void> {
    this.#keptUntil.set(tenant, this.#now() + ms)
  }

  async count(tenant: TenantId): Promise<number> {
    return this.#tenantOf(tenant).places.size
  }

  async look(id: TenantId, { process, joined, left, customers }: LineNews): Promise<StartLine> {
    const tenant = this.#tenantOf(id)
    const now = this.#now()
    for (const runId of left) tenant.line.delete(runId)
    const waits = new Set([...tenant.line.values()].map(({ customer = '' }) => customer))
    for (const name of tenant.turnsOf.keys()) if (!waits.has(name)) tenant.turnsOf.delete(name)
    for (const { waitedMs, ...start } of joined) {
      const { customer: name = '' } = start
      const least = Math.min(...tenant.turnsOf.values())
      if (!tenant.turnsOf.has(name)) tenant.turnsOf.set(name, Number.isFinite(least) ? least : 0)
      tenant.line.set(start.runId, { ...start, process, since: now - waitedMs })
    }
    const { line, places, lowerAt, turnsOf } = tenant
    const atWorkOf = new Map(customers.map((name) => [name, placesOf(tenant, name).size]))
    this.#keep(id, tenant)
    const counted = { atWork: places.size, atWorkOf, turnsOf: new Map(turnsOf), lowerAt }
    const known = { runMs: this.#runMs.get(id) ?? 0, isKeptFree: this.#isKeptFree(id) }
    return { now, starts: [...line.values()], ...counted, ...known }
  }

  #isKeptFree(id: TenantId): boolean {
    return (this.#keptUntil.get(id) ?? 0) > this.#now()
  }

  async isWaiting(id: TenantId, runId: string): Promise<boolean> {
    return this.#tenantOf(id).line.has(runId)
  }

  #tenantOf(id: TenantId): Tenant {
    const tenant = this.#tenants.get(id) ?? {
      ...{ places: new Map(), placesOf: new Map(), line: new Map(), turnsOf: new Map() },
      lowerAt: 0,
    }
    for (const places of [tenant.places, ...tenant.placesOf.values()]) {
      for (const [runId, until] of places) if (until <= this.#now()) places.delete(runId)
    }
    return tenant
  }

  #keep(id: TenantId, tenant: Tenant): void {
    for (const [name, { size }] of tenant.placesOf) if (size === 0) tenant.placesOf.delete(name)
    if (tenant.places.size === 0 && tenant.line.size === 0) this.#tenants.delete(id)
    else this.#tenants.set(id, tenant)
  }
}

/** The places of a customer. Runs without a customer are not counted per customer. */
function placesOf(tenant: Tenant, customer: string | undefined): Places {
  const places = (customer !== undefined && tenant.placesOf.get(customer)) || new Map<string, number>()
  if (customer !== undefined) tenant.placesOf.set(customer, places)
  return places
}

const pressing = (line: Tenant['line']): number =>
  [...line.values()].filter(({ customer }) => customer !== BATCH_ITEMS).length

const hasRoom = (places: Places, runId: string, limit: number | null): boolean =>
  limit === null || places.has(runId) || places.size < limit

function hold(tenant: Tenant, { runId, customer }: Omit<PlacedRun, 'tenant'>, until: number): void {
  tenant.places.set(runId, until)
  placesOf(tenant, customer).set(runId, until)
}
