import type { QueuePlan } from '../../shared/agent/tools/port.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import { queueNothing, queuePlanWith } from '../../shared/work/plans/submit.ts'
import type { JobQueue } from '../../shared/work/queue/port.ts'
import type { OpenedStore } from './open-store.ts'

/** Creates the function that queues the approved plans of runs (`auto_queue_plan`). */
export function createPlanQueue(
  { hasPlanQueue }: Pick<Settings['plans'], 'hasPlanQueue'>,
  store: Pick<OpenedStore, 'plans' | 'idempotency'> | undefined,
  { queue, events }: { queue: JobQueue; events: EventSink },
): (tenant: TenantId) => QueuePlan {
  if (!store || !hasPlanQueue) return queueNothing
  const { plans, idempotency } = store
  return queuePlanWith({ plans, idempotency, queue, events, now: () => new Date() })
}
