import type { QueuedRunSource, QueuedRunState } from '../../../cluster/queued-runs/run-source.ts'
import { traceIdOf } from '../../../kernel/ids.ts'
import type { JobQueue } from '../../queue/port.ts'
import type { Dispatch, DispatchStore } from '../port.ts'
import { endBy, mayBeginAgain } from '../transitions.ts'

type Deps = { dispatches: Pick<DispatchStore, 'get' | 'takeCreated' | 'end'>; queue: Pick<JobQueue, 'remove'> }

/** Finds the runs of flows by their dispatches, and cancels those that wait for one. */
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
      if (lost !== undefined) return true // The executor that gets its job next announces the end.
      await queue.remove({ kind: 'flow', tenant, id }).catch(() => {}) // An executor that takes it all the same finds it ended.
      return true
    },
  }
}

function stateOf(dispatch: Dispatch): QueuedRunState {
  const { status, executor, error, started_at } = dispatch
  if (status === 'queued') return { state: 'queued', started_at }
  if (executor !== null && status === 'running')
    return { state: 'running', executor, ...(mayBeginAgain(dispatch) && { mayMove: { started_at } }) }
  const isCancelled = error?.code === 'cancelled'
  if (executor !== null) return { state: 'ended', executor, ...(isCancelled && { code: 'cancelled' }) }
  return { state: 'ended', executor, code: isCancelled ? 'cancelled' : 'worker_lost' }
}
