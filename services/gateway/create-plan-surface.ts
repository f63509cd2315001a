import type { ToolBox } from '../../shared/agent/tools/port.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import { PlanCalls } from '../../shared/work/plans/calls.ts'
import { estimatePlan } from '../../shared/work/plans/estimate-plan.ts'
import { PlanSchedules } from '../../shared/work/plans/schedules.ts'
import { runSchedule } from '../../shared/work/plans/ticks.ts'
import type { JobQueue, Schedules } from '../../shared/work/queue/port.ts'
import { estimatesOf } from '../wiring/open-limits.ts'
import type { OpenedStore } from '../wiring/open-store.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import type { PlanSurface } from './routes/plans.ts'

type Parts = {
  store: Pick<OpenedStore, 'plans' | 'planSchedules' | 'tickRecords' | 'idempotency' | 'files'> | undefined
  queue: JobQueue
  schedules: Schedules
  broker: Broker
  events: EventSink
  toolBox: ToolBox
  tenantConfig: Pick<OpenedTenantConfig, 'configs' | 'limits'> | undefined
}

/** Opens the services behind the plan endpoints. `undefined` without a store, and where the queue is off (PLAN_QUEUE). */
export function createPlanSurface(
  { plans: { hasPlanQueue, scheduleLeastSecs: leastSecs }, tenants }: Pick<Settings, 'plans' | 'tenants'>,
  { store, queue, schedules, broker, events, toolBox, tenantConfig }: Parts,
): PlanSurface | undefined {
  if (!store || !hasPlanQueue) return undefined
  const estimates = { ...estimatesOf(tenants.limits, tenantConfig), toolBox }
  const { plans, idempotency, planSchedules, tickRecords: records, files } = store
  const now = () => new Date()
  const submission = { plans, idempotency, queue, events, now }
  return {
    calls: new PlanCalls({ ...submission, broker, files }),
    schedules: new PlanSchedules({ store: planSchedules, records, schedules, plans, files, now, leastSecs }),
    runSchedule: (tenant, name, call) =>
      runSchedule(tenant, name, { ...call, ...submission, store: planSchedules, records }),
    estimate: (tenant, request) => estimatePlan(tenant, request, { ...estimates, files }),
  }
}
