import { once } from '../../shared/kernel/async/once.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { FlowExecution } from '../../shared/work/flows/execute/agents.ts'
import type { Dispatch, Dispatches } from '../../shared/work/flows/port.ts'

/**
 * Returns a function that records, once, that a flow's run may have changed something from now on (D34.2). A run without a key never begins anew, so nothing is
 * recorded of it.
 */
export function actionRecorder(
  tenant: TenantId,
  { idempotency_key: key, executor, trace_id: traceId }: Dispatch,
  dispatches: Pick<Dispatches, 'noteAction'>,
): FlowExecution['beforeAction'] {
  if (key === null || executor === null) return undefined
  return once(async () => {
    if (!(await dispatches.noteAction(tenant, traceId, executor))) throw new Error('another executor has the run')
  })
}
