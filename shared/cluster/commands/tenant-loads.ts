import type { TenantId } from '../../kernel/tenant.ts'

/** The load of a tenant on a process at the moment. `waiting_runs`: those of its live runs that wait for their turn or for a permission. */
export type TenantLoad = { tenant: TenantId; live_runs: number; waiting_runs: number; sessions: number }
/** The first `limit` tenants whose names come after this one. */
export type TenantRange = { after: string; limit: number }

/** Counts the runs and sessions of each tenant on a process. `runs` are those that have not ended. */
export function countLoads(
  { runs, sessions }: { runs: Iterable<Counted & { status: string }>; sessions: Iterable<Counted> },
  range: TenantRange,
): TenantLoad[] {
  const loads = new Map<TenantId, TenantLoad>()
  const add = (tenant: TenantId, field: keyof Counts) => {
    if (tenant <= range.after) return
    const load = loads.get(tenant) ?? { tenant, live_runs: 0, waiting_runs: 0, sessions: 0 }
    load[field]++
    loads.set(tenant, load)
  }
  for (const { tenant, status } of runs) {
    add(tenant, 'live_runs')
    if (status === 'waiting') add(tenant, 'waiting_runs')
  }
  for (const { tenant } of sessions) add(tenant, 'sessions')
  return firstOf(loads, range)
}

/** Adds up the loads of several processes. All answers are for the same range. */
export function mergeLoads(answers: readonly (readonly TenantLoad[])[], range: TenantRange): TenantLoad[] {
  const loads = new Map<TenantId, TenantLoad>()
  for (const { tenant, live_runs, waiting_runs, sessions } of answers.flat()) {
    const load = loads.get(tenant) ?? { tenant, live_runs: 0, waiting_runs: 0, sessions: 0 }
    load.live_runs += live_runs
    load.waiting_runs += waiting_runs
    load.sessions += sessions
    loads.set(tenant, load)
  }
  return firstOf(loads, range)
}

type Counted = { readonly tenant: TenantId }
type Counts = Omit<TenantLoad, 'tenant'>

function firstOf(loads: ReadonlyMap<TenantId, TenantLoad>, { limit }: TenantRange): TenantLoad[] {
  const sorted = [...loads.values()].sort((one, other) => (one.tenant < other.tenant ? -1 : 1))
  return sorted.slice(0, limit)
}
