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
 * A job that waits for this long may have been lost with the queue's Redis, as that of a dead executor may: it is added again, which changes nothing when
 * it is still there.
 */
const REQUEUE_MS = 4_000

/**
 * Returns the dispatch when it has ended, or does not exist. One whose executor was lost, or that no executor took in time, is ended
 * here first, by compare-and-set. `'running'` while it waits or goes on; the job of one that waits for long, or for another executor, is added again.
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
    const isAwaited = !isUnhurried(dispatch) // The sweep looks after the others.
    if (mayBeLost && isAwaited) await queue.add(jobOf(tenant, dispatch)).catch(() => {}) // It is tried again at the next look.
    return 'running'
  }
  const ended = await dispatches.end(tenant, traceId, { executor, result })
  if (!ended) return settle(tenant, traceId, deps) // Another process was faster.
  if (executor === null) await queue.remove(jobOf(tenant, dispatch)).catch(() => {}) // An executor that takes it anyway finds it ended.
  return ended
}

/** An event that may end the execution: how long it has waited, or that its executor has died. */
async function lossOf(
  { executor }: Dispatch,
  { executors, knownMs, lostMs }: SettleDeps,
): Promise<LossEvent | undefined> {
  if (executor === null) return { type: 'waited', ms: knownMs }
  return (await executors.isAlive(executor)) ? undefined : { type: 'executor_died', executor, ms: lostMs(executor) }
}

/** With more executions than this, some are taken for younger than they are. */
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
