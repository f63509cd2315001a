import type { TenantId } from '../../kernel/tenant.ts'
import { DAY_MS } from '../../kernel/time.ts'
import type { DispatchStore } from './port.ts'

export type RetentionSweepDeps = {
  dispatches: Pick<DispatchStore, 'removeStartedBefore'>
  /** Every tenant that can have changed its retention, in pages in a fixed order; empty after the last. */
  tenants(after: TenantId | undefined): Promise<TenantId[]>
  /** The tenant's `audit.retention_days` at the moment. */
  retentionDays(tenant: TenantId): Promise<number>
  now?: () => Date
  /** The limits of one run; the next run continues where it stopped. */
  maxTenants?: number
  maxRemoved?: number
}

/** Deletes records beyond a tenant's present retention. Expiry alone uses the retention at the time when they were created. */
export type RetentionSweep = {
  /** Returns how many records it has deleted. A call during a run joins it. Throws `unavailable`; the next run skips the tenant that failed. */
  run(): Promise<number>
}

const MAX_TENANTS = 1_000
const MAX_REMOVED = 10_000

export function createRetentionSweep(deps: RetentionSweepDeps): RetentionSweep {
  const { dispatches, tenants, retentionDays } = deps
  const { now = () => new Date(), maxTenants = MAX_TENANTS, maxRemoved = MAX_REMOVED } = deps
  let position: TenantId | undefined
  let running: Promise<number> | undefined

  const sweep = async (): Promise<number> => {
    let removed = 0
    for (let visited = 0; visited < maxTenants; ) {
      const page = await tenants(position)
      if (page.length === 0) position = undefined
      if (page.length === 0) return removed
      for (const tenant of page.slice(0, maxTenants - visited)) {
        const previous = position
        position = tenant
        visited++
        const beforeMs = now().getTime() - DAY_MS * (await retentionDays(tenant))
        removed += await dispatches.removeStartedBefore(tenant, beforeMs, maxRemoved - removed)
        if (removed < maxRemoved) continue
        position = previous // The tenant may have more records to delete.
        return removed
      }
    }
    return removed
  }
  return {
    run() {
      running ??= sweep().finally(() => {
        running = undefined
      })
      return running
    },
  }
}
