import type { TenantId } from '../../kernel/tenant.ts'
import type { Run } from './run.ts'

/** Ended runs by tenant, those of each in the order in which they ended. */
export class EndedRuns {
  readonly #tenants = new Map<TenantId, Set<Run>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(run: Run): void {
    const runs = this.#tenants.get(run.tenant) ?? new Set()
    this.#tenants.set(run.tenant, runs.add(run))
    this.#size++
  }

  delete(run: Run): void {
    const runs = this.#tenants.get(run.tenant)
    if (!runs?.delete(run)) return
    this.#size--
    if (runs.size === 0) this.#tenants.delete(run.tenant)
  }

  /** Removes the oldest run of the tenant and returns it, if the tenant has more than `max`. */
  takeAbove(max: number, tenant: TenantId): Run | undefined {
    const runs = this.#tenants.get(tenant)
    const oldest = runs && runs.size > max ? runs.values().next().value : undefined
    if (oldest) this.delete(oldest)
    return oldest
  }

  /**
   * Returns the run to forget for the benefit of others: the oldest without a reader, of the tenant that has the most. `weightOf`
   * returns how much a tenant has, by default the number of its runs here. Tenants with 0 are spared.
   */
  next(weightOf: (tenant: TenantId) => number = (tenant) => this.#tenants.get(tenant)?.size ?? 0): Run | undefined {
    let next: Run | undefined
    let most = 0
    for (const [tenant, runs] of this.#tenants) {
      const weight = weightOf(tenant)
      const oldest = weight > most ? oldestUnread(runs) : undefined
      if (!oldest) continue
      next = oldest
      most = weight
    }
    return next
  }
}

function oldestUnread(runs: Iterable<Run>): Run | undefined {
  for (const run of runs) if (run.journal.readerCount === 0) return run
  return undefined
}
