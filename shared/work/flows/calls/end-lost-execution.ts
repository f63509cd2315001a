import type { KnownExecutors } from '../../../cluster/members/executors.ts'
import { createCache } from '../../../kernel/cache.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { JobQueue } from '../../queue/port.ts'
import type { Dispatch, Dispatches } from '../port.ts'
import { endBy, isEnded, isUnhurried, jobOf, type LossEvent } from '../transitions.ts'

export type SettleDeps = {
  dispatches: Pick<Dispatches, 'get' | 'end'>
  executors: Pick<KnownExecutors, 'isAlive'>
  queue: Pick<JobQueue, 'add' | 'remove'>
  /** How long this process has known the execution, by its monotonic clock: the wall clocks of processes may differ by hours. */
  knownMs: number
  /** How long this process has known that the executor of this epoch, which runs the execution, is dead. */
  lostMs(executor: number): number
}

/**
 * A job that waits for this long may have been lost with the queue's Redis, and so may that of a dead executor. It is added again, which changes
 * nothing if it still exists.
 */
const REQUEUE_MS = 4_000

/**
 * Returns the dispatch when it has ended, or does not exist. If its executor was lost, or no executor took it in time, it is first ended here, by
 * compare-and-set. `'running'` while it waits or runs; if it waits for long, or for another executor, its job is added again.
 */
export async function settle(
  tenant: TenantId,
  traceId: string,
  deps: SettleDeps,
): Promise<Dispatch | 'running' | undefined> {
  const { dispatches, queue } = deps
  const dispatch = await dispatches.get(tenant, traceId)
  if (!dispatch || isEnded(dispatch)) return dispatch
  const { executor } = dispatch
  const event = await lossOf(dispatch, deps)
  const result = event && endBy(dispatch, event)
  if (!result) {
    const mayBeLost = executor === null ? deps.knownMs > REQUEUE_MS : event !== undefined
    const isAwaited = !isUnhurried(dispatch) // The sweep handles the others.
    if (mayBeLost && isAwaited) await queue.add(jobOf(tenant, dispatch)).catch(() => {}) // A failure is tried again at the next check.
    return 'running'
  }
  const ended = await dispatches.end(tenant, traceId, { executor, result })
  if (!ended) return settle(tenant, traceId, deps) // Another process was faster.
  // If an executor still takes the job, it finds the execution ended.
  if (executor === null) await queue.remove(jobOf(tenant, dispatch)).catch(() => {})
  return ended
}

/** The event that may end the execution: the time that it has waited, or the loss of its executor. */
async function lossOf(
  { executor }: Dispatch,
  { executors, knownMs, lostMs }: SettleDeps,
): Promise<LossEvent | undefined> {
  if (executor === null) return { type: 'waited', ms: knownMs }
  return (await executors.isAlive(executor)) ? undefined : { type: 'executor_died', executor, ms: lostMs(executor) }
}

/** With more executions than this, some are assumed to be younger than they are. */
const MAX_KNOWN = 100_000

/**
 * Measures how long this process has known an execution, in milliseconds from the first question about it. `now` is a monotonic clock. The
 * time that is stored with an execution comes from the wall clock of another process, which may be wrong by hours.
 */
export function createAges(now = () => performance.now()): (traceId: string) => number {
  const since = createCache<string, number>(MAX_KNOWN)
  return (traceId) => {
    const at = now()
    const first = since.get(traceId) ?? at
    since.set(traceId, first)
    return at - first
  }
}
