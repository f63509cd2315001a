import type { PlanSurface } from '../../services/gateway/routes/plans.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { createIdempotency } from '../../shared/platform/store/idempotency.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import type { Estimate } from '../../shared/tenancy/limits/estimate.ts'
import { PlanSchedules } from '../../shared/work/plans/schedules.ts'
import { createPlanScheduleStore } from '../../shared/work/plans/store/plan-schedules.ts'
import { createTickRecords } from '../../shared/work/plans/store/tick-records.ts'
import { runSchedule } from '../../shared/work/plans/ticks.ts'
import { MemorySchedules } from '../../shared/work/queue/memory-schedules.ts'
import { NO_FILES } from '../support/no-files.ts'
import { openTestStore } from '../support/test-store.ts'
import { executorOf, openProcess, type Process, stepOf } from '../work/plans/calls-setup.ts'

export const CHAIN = { steps: [stepOf('a'), stepOf('b', 'a')] }

/** Of a plan without steps. */
export const NO_ESTIMATE: Estimate = { calls: [], input_tokens: 0, cost_usd_from: 0, cost_usd_to: 0, budget: 'enough' }

type Planning = AsyncDisposable &
  Process & {
    surface: PlanSurface
    /** Stores a plan of one step that fails, and returns its id. */
    failed(tenant: TenantId): Promise<string>
  }

/** The real services behind the routes, on a SQLite store, with a queue and a relay that only note what they are told. */
export async function openPlanning(): Promise<Planning> {
  const opened = await openTestStore()
  const { store } = opened
  const process = openProcess(store)
  const { calls, plans } = process
  const queue = { add: async () => {} }
  const timers = new MemorySchedules({ queue, onProblem: () => {} })
  const parts = {
    store: createPlanScheduleStore(store),
    records: createTickRecords(store),
    plans,
    now: () => new Date(),
  }
  const schedules = new PlanSchedules({ ...parts, schedules: timers, files: NO_FILES, leastSecs: 10 })
  const submission = { ...parts, queue, events: NO_EVENTS, idempotency: createIdempotency(store) }
  return Object.assign(process, {
    surface: {
      calls,
      schedules,
      runSchedule: (tenant, name, call) => runSchedule(tenant, name, { ...submission, ...call }),
      estimate: async () => NO_ESTIMATE,
    } satisfies PlanSurface,
    async failed(tenant: TenantId) {
      const { plan } = await calls.submit(tenant, CHAIN, { subject: 'anonymous' })
      const executor = executorOf(plans, tenant, plan.id)
      await executor.begin()
      await executor.beginStep('a')
      await executor.failStep('a', 'main did not answer')
      await executor.finish()
      return plan.id
    },
    async [Symbol.asyncDispose]() {
      await timers.close()
      await opened[Symbol.asyncDispose]()
    },
  })
}
