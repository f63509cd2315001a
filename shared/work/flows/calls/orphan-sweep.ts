import type { KnownExecutors } from '../../../cluster/members/executors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { JobQueue } from '../../queue/port.ts'
import type { Dispatch, DispatchStore } from '../port.ts'
import { jobOf } from '../transitions.ts'
import { settle } from './end-lost-execution.ts'

export type OrphanSweepDeps = {
  executors: Pick<KnownExecutors, 'isAlive'>
  dispatches: Pick<DispatchStore, 'list' | 'get' | 'end'>
  queue: Pick<JobQueue, 'add' | 'missing'>
  /** Every tenant that can have run a flow, in pages in a fixed order; empty after the last. */
  tenants(after: TenantId | undefined): Promise<TenantId[]>
  /** How long this process has known an execution, or its loss (`createAges`). */
  knownMs(id: string): number
  now: () => Date
}

const KINDS = ['run', 'evaluation'] as const
const OPEN = ['queued', 'running'] as const
const AT_ONCE = 50
/** The queue need not change: an executor that takes the job later finds its execution ended. */
const NO_QUEUE = { add: async () => {}, remove: async () => {} }

/**
 * Ends the executions whose jobs are lost and whose clients have left, so that none stays queued or running. (Usually the gateway of a waiting
 * client, or the job, ends an execution.) Executions with a deadline are queued again. Returns how many it has ended. Throws `unavailable`.
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
        await queueLost(tenant, page.dispatches, deps)
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
    }
  }
  return ended
}

/** A job that is missing for this long was lost, not just being added. */
const ADDED_MS = 10_000

/** Queues those that have time until their deadline and whose jobs are lost, or over while they wait for a vendor. */
async function queueLost(
  tenant: TenantId,
  open: readonly Dispatch[],
  { queue, knownMs, now }: Pick<OrphanSweepDeps, 'queue' | 'knownMs' | 'now'>,
): Promise<void> {
  const isDue = ({ trace_id, status, look_at_ms = 0 }: Dispatch) =>
    knownMs(trace_id) > ADDED_MS && (status === 'running' || look_at_ms <= now().getTime())
  const unhurried = open.filter((dispatch) => dispatch.deadline_at !== undefined && isDue(dispatch))
  const jobs = new Map(unhurried.map((dispatch) => [dispatch.trace_id, jobOf(tenant, dispatch)]))
  const missing = jobs.size > 0 ? await queue.missing('batch', [...jobs.keys()]) : []
  await Promise.all(missing.flatMap((id) => jobs.get(id) ?? []).map((job) => queue.add(job)))
}
