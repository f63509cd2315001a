import { once } from '../../shared/kernel/async/once.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { FlowExecution } from '../../shared/work/flows/execute/agents.ts'
import type { Dispatch, Dispatches } from '../../shared/work/flows/port.ts'

/**
 * Returns a function that records, once, that a flow's run may have changed something from now on (D34.2). The record also makes sure that the run is still
 * claimed for this executor: a database that has lost a member may have lost the claim.
 */
export function actionRecorder(
  tenant: TenantId,
  { executor, trace_id: traceId }: Dispatch,
  dispatches: Pick<Dispatches, 'noteAction'>,
): FlowExecution['beforeAction'] {
  if (executor === null) return undefined
  return once(async () => {
    if (!(await dispatches.noteAction(tenant, traceId, executor))) throw new Error('another executor has the run')
  })
}
