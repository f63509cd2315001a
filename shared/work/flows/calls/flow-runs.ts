import type { SourceState } from '../../../cluster/following/port.ts'
import type { QueuedRunSource } from '../../../cluster/following/queue-places.ts'
import { traceIdOf } from '../../../kernel/ids.ts'
import type { JobQueue } from '../../queue/port.ts'
import type { Dispatch, DispatchStore } from '../port.ts'
import { endBy, isUnhurried, jobOf, mayBeginAgain } from '../transitions.ts'

type Deps = { dispatches: Pick<DispatchStore, 'get' | 'takeCreated' | 'end'>; queue: Pick<JobQueue, 'remove'> }

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
      if (lost !== undefined || isUnhurried(dispatch)) return true // The executor that gets its job next announces the end.
      await queue.remove(jobOf(tenant, dispatch)).catch(() => {}) // If an executor still takes the job, it finds the execution ended.
      return true
    },
  }
}

function stateOf(dispatch: Dispatch): SourceState {
  const { status, executor: epoch, error, started_at, deadline_at } = dispatch
  if (status === 'queued') return { state: 'waiting', started_at, ...(deadline_at !== undefined && { deadline_at }) }
  if (epoch !== null && status === 'running')
    return { state: 'at', epoch, ...(mayBeginAgain(dispatch) && { mayMove: { started_at } }) }
  const isCancelled = error?.code === 'cancelled'
  if (epoch !== null) return { state: 'ended', epoch, ...(isCancelled && { code: 'cancelled' }) }
  return { state: 'ended', epoch, code: isCancelled ? 'cancelled' : 'worker_lost' }
}
