import type { KnownExecutors } from '../../../cluster/members/executors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { DispatchStore } from '../port.ts'
import { settle } from './end-lost-execution.ts'

export type OrphanSweepDeps = {
  executors: Pick<KnownExecutors, 'isAlive'>
  dispatches: Pick<DispatchStore, 'list' | 'get' | 'end'>
  /** Every tenant that can have run a flow, in pages in a fixed order; empty after the last. */
  tenants(after: TenantId | undefined): Promise<TenantId[]>
  /** How long this process has known an execution, or that one is lost (`createAges`). */
  knownMs(id: string): number
}

const KINDS = ['run', 'evaluation'] as const
const OPEN = ['queued', 'running'] as const
const AT_ONCE = 50
/** An executor that still takes a job finds its execution ended. */
const NO_QUEUE = { add: async () => {}, remove: async () => {} }

/**
 * Ends the executions whose jobs are lost and whose clients have left, so that none stays queued or running: a waiting client's
 * gateway and the job of an execution end it otherwise. Returns how many it has ended. Throws `unavailable`.
 */
export async function sweepOrphans(deps: OrphanSweepDeps): Promise<number> {
  let ended = 0
  for (let page = await deps.tenants(undefined); page.length > 0; page = await deps.tenants(page.at(-1))) {
    for (const tenant of page) ended += await sweepTenant(tenant, deps)
  }
  return ended
}

async function sweepTenant(tenant: TenantId, deps: OrphanSweepDeps): Promise<number> {
  let ended = 0
  for (const kind of KINDS) {
    for (const status of OPEN) {
      let cursor: string | undefined
      do {
        const page = await deps.dispatches.list(tenant, { kind, status, limit: AT_ONCE, cursor })
        const settling = page.dispatches.map(({ trace_id }) =>
          settle(tenant, trace_id, {
            ...deps,
            queue: NO_QUEUE,
            knownMs: deps.knownMs(trace_id),
            lostMs: (executor) => deps.knownMs(`${trace_id} ${executor}`),
          }),
        )
        const settled = await Promise.all(settling)
        ended += settled.filter((each) => typeof each === 'object').length
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
    }
  }
  return ended
}
