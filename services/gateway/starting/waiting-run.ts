import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { hasKind } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'

/** A run that waits for these permission requests and these calls of its client, and the number of its events so far. */
export type WaitingRun = {
  runId: string
  permissionIds: readonly string[]
  toolCallIds: readonly string[]
  eventCount: number
}

/** Finds the run of the session that waits for somebody's answer, other than `except`. `undefined` also for an unknown session. */
export async function findWaitingRun(
  broker: Pick<Broker, 'getSession' | 'getRun'>,
  tenant: TenantId,
  sessionId: string,
  except?: string,
): Promise<WaitingRun | undefined> {
  try {
    const { active_run_id: runId } = await broker.getSession(tenant, sessionId)
    if (runId === null || runId === except) return undefined
    const run = await broker.getRun(tenant, runId)
    const { permission_ids: permissionIds = [], tool_call_ids: toolCallIds = [], event_count: eventCount } = run
    return permissionIds.length + toolCallIds.length === 0
      ? undefined
      : { runId, permissionIds, toolCallIds, eventCount }
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return undefined
    throw cause
  }
}

export const waitingBody = ({ runId, permissionIds, toolCallIds }: WaitingRun) => ({
  run_id: runId,
  permission_ids: [...permissionIds],
  ...(toolCallIds.length > 0 && { tool_call_ids: [...toolCallIds] }),
})

export const announcement = (waiting: WaitingRun): string =>
  renderFrame(0, {
    type: 'warning',
    code: 'waiting_for_permission',
    message: `the message waits for ${waiting.runId}, which waits for ${waiting.permissionIds.length > 0 ? 'permission' : 'its client'}`,
    detail: {
      ...waitingBody(waiting),
      suggestion: 'Answer the requests, or send messages with "if_waiting": "deny".',
    },
  })
