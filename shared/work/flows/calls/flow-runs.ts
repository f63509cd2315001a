import type { SourceState } from '../../../cluster/following/port.ts'
import type { QueuedRunSource } from '../../../cluster/following/queue-places.ts'
import { retryUntil } from '../../../kernel/async/retry.ts'
import { traceIdOf } from '../../../kernel/ids.ts'
import type { JobQueue } from '../../queue/port.ts'
import type { Dispatch, DispatchStore } from '../port.ts'
import { endBy, isUnhurried, jobOf, mayBeginAgain } from '../transitions.ts'

type Deps = {
  dispatches: Pick<DispatchStore, 'get' | 'takeCreated' | 'end'>
  queue: Pick<JobQueue, 'add' | 'remove'>
}

/** For how long, and how often, the job of a cancelled flow is sent to a queue that does not answer. */
const ADD_WITHIN_MS = 60_000
const ADD_EVERY_MS = 500

/** Finds the runs of flows by their dispatches, and cancels those that wait for an executor. */
export function createFlowRuns({ dispatches, queue }: Deps): QueuedRunSource {
  return {
    takeCreated(tenant, runId) {
      const dispatch = dispatches.takeCreated(tenant, traceIdOf(runId))
      return dispatch && stateOf(dispatch)
    },
    async find(tenant, runId) {
      const dispatch = await dispatches.get(tenant, traceIdOf(runId))
      return dispatch && stateOf(dispatch)
    },
    async cancelWaiting(tenant, runId, lost) {
      const [id, executor] = [traceIdOf(runId), lost ?? null]
      const dispatch = await dispatches.get(tenant, id)
      const result = dispatch && endBy(dispatch, { type: 'cancelled', executor })
      if (!result || !(await dispatches.end(tenant, id, { executor, result }))) return false
      const job = jobOf(tenant, dispatch)
      // The executor that gets its job next announces the end. One that waits for a vendor has none: it gets one, and withdraws its calls.
      if (lost === undefined && dispatch.look_at_ms !== undefined) void addJob(() => queue.add(job))
      if (lost !== undefined || isUnhurried(dispatch)) return true
      await queue.remove(job).catch(() => {}) // If an executor still takes the job, it finds the execution ended.
      return true
    },
  }
}

const addJob = (add: () => Promise<void>): Promise<void> =>
  retryUntil(add, { pauses: ADD_EVERY_MS, until: performance.now() + ADD_WITHIN_MS, ref: false }).catch(() => {})

function stateOf(dispatch: Dispatch): SourceState {
  const { status, executor: epoch, error, started_at, deadline_at } = dispatch
  if (status === 'queued') return { state: 'waiting', started_at, ...(deadline_at !== undefined && { deadline_at }) }
  if (epoch !== null && status === 'running')
    return { state: 'at', epoch, ...(mayBeginAgain(dispatch) && { mayMove: { started_at } }) }
  const isCancelled = error?.code === 'cancelled'
  if (epoch !== null) return { state: 'ended', epoch, ...(isCancelled && { code: 'cancelled' }) }
  return { state: 'ended', epoch, code: isCancelled ? 'cancelled' : 'worker_lost' }
}
