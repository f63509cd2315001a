import type { Broker } from '../../shared/broker/port.ts'
import type { Config } from '../../shared/config/config.ts'
import { PlanCalls } from '../../shared/plans/calls.ts'
import { PlanSchedules } from '../../shared/plans/schedules.ts'
import type { JobQueue, Schedules } from '../../shared/queue/port.ts'
import type { OpenedStore } from '../wiring/store.ts'
import type { PlanSurface } from './routes/plan-surface.ts'

type Parts = {
  store: Pick<OpenedStore, 'plans' | 'planSchedules' | 'idempotency'> | undefined
  queue: JobQueue
  schedules: Schedules
  broker: Broker
}

/** Opens the services behind the plan endpoints. `undefined` without a store, and where the queue is off (PLAN_QUEUE). */
export function openPlanSurface(
  { hasPlanQueue }: Pick<Config, 'hasPlanQueue'>,
  { store, queue, schedules, broker }: Parts,
): PlanSurface | undefined {
  if (!store || !hasPlanQueue) return undefined
  const { plans, idempotency } = store
  const deps = { plans, idempotency, queue, now: () => new Date() }
  return {
    calls: new PlanCalls({ ...deps, broker }),
    schedules: new PlanSchedules({ ...deps, store: store.planSchedules, schedules }),
  }
}
