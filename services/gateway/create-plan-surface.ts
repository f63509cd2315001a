import type { Broker } from '../../shared/cluster/commands/broker.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import { PlanCalls } from '../../shared/work/plans/calls.ts'
import { PlanSchedules } from '../../shared/work/plans/schedules.ts'
import type { JobQueue, Schedules } from '../../shared/work/queue/port.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import type { PlanSurface } from './routes/plans.ts'

type Parts = {
  store: Pick<OpenedStore, 'plans' | 'planSchedules' | 'tickRecords' | 'idempotency' | 'files'> | undefined
  queue: JobQueue
  schedules: Schedules
  broker: Broker
  events: EventSink
}

/** Opens the services behind the plan endpoints. `undefined` without a store, and where the queue is off (PLAN_QUEUE). */
export function createPlanSurface(
  { hasPlanQueue, scheduleLeastSecs: leastSecs }: Settings['plans'],
  { store, queue, schedules, broker, events }: Parts,
): PlanSurface | undefined {
  if (!store || !hasPlanQueue) return undefined
  const { plans, idempotency, planSchedules, tickRecords: records, files } = store
  return {
    calls: new PlanCalls({ plans, idempotency, queue, events, now: () => new Date(), broker, files }),
    schedules: new PlanSchedules({
      store: planSchedules,
      records,
      schedules,
      plans,
      files,
      now: () => new Date(),
      leastSecs,
    }),
  }
}
