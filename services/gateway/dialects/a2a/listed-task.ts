import type { RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { planRunId } from '../../../../shared/kernel/ids.ts'
import type { PlanSummary } from '../../../../shared/work/plans/view.ts'
import { STATES } from './plan-projection.ts'
import { type TaskState, TaskWriter } from './task.ts'
import type { TaskRef } from './task-id.ts'

/** A task as the record of its run or plan describes it, without its artifacts. */
export type ListedTask = { ref: TaskRef; state: TaskState; timestamp: string; metadata: JsonObject }

/** The context of a run without a session is the run itself. */
export function listedRun(run: RunSummary): ListedTask {
  const { run_id: runId, session_id: contextId = runId, ended_at, started_at, title, flow } = run
  const metadata = { ...(title !== undefined && { title }), ...(flow !== undefined && { flow }) }
  return { ref: { runId, contextId }, state: stateOf(run), timestamp: ended_at ?? started_at, metadata }
}

/** A run that waits before its first event is queued. */
function stateOf({ status, code, event_count: count }: RunSummary): TaskState {
  if (status === 'waiting') return count === 0 ? 'SUBMITTED' : 'INPUT_REQUIRED'
  if (status === 'running') return 'WORKING'
  if (status === 'cancelled') return 'CANCELED'
  return status === 'failed' || code === 'invalid_output' ? 'FAILED' : 'COMPLETED'
}

export function listedPlan({ id, title, status, ended_at, started_at, created_at }: PlanSummary): ListedTask {
  const runId = planRunId(id)
  const metadata = { plan_id: id, ...(title !== undefined && { title }) }
  const timestamp = ended_at ?? started_at ?? created_at
  return { ref: { runId, contextId: runId, isPlan: true }, state: STATES[status], timestamp, metadata }
}

export const headOf = ({ ref, state, timestamp, metadata }: ListedTask): JsonObject =>
  new TaskWriter(ref).task({ status: { state, timestamp }, artifacts: [], metadata })
