import { AppError } from '../../../shared/kernel/errors.ts'
import { newId } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { createIdempotency } from '../../../shared/platform/store/idempotency.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { NO_EVENTS } from '../../../shared/tenancy/events/port.ts'
import type { PlanLimits, PlanRecord } from '../../../shared/work/plans/port.ts'
import { PlanSchedules } from '../../../shared/work/plans/schedules.ts'
import { createPlanScheduleStore } from '../../../shared/work/plans/store/plan-schedules.ts'
import { StoredPlans } from '../../../shared/work/plans/store/plans.ts'
import { createTickRecords } from '../../../shared/work/plans/store/tick-records.ts'
import { PlanTicks, runSchedule } from '../../../shared/work/plans/ticks.ts'
import type { Job, Timing } from '../../../shared/work/queue/port.ts'
import { tickId } from '../../../shared/work/queue/schedule-times.ts'
import { NO_FILES } from '../../support/no-files.ts'
import { tenantId } from '../../support/tenant.ts'
import { stepOf } from './calls-setup.ts'

export const LEAST_SECS = 10
export const PLAN = { title: 'Report', steps: [stepOf('a')] }

type Options = { limits?: PlanLimits; tenant?: TenantId; admits?: () => boolean }

/** The schedules and ticks of one process, a queue that notes what it is told, and a tenant of this test. */
export function openSchedules(store: Store, { limits, admits = () => true, ...options }: Options = {}) {
  const tenant = options.tenant ?? tenantId(newId('sess'))
  const plans = new StoredPlans(store, limits && { limits })
  const told: [string, Timing | undefined][] = []
  const jobs: Job[] = []
  /** Outcomes of ticks, and requests that were counted for the tenant. */
  const outcomes: string[] = []
  const state = { isQueueAway: false, counted: 0, now: new Date() }
  const tell = async (name: string, timing: Timing | undefined) => {
    if (state.isQueueAway) throw new AppError('unavailable', 'the queue does not answer')
    told.push([name, timing])
  }
  const parts = {
    store: createPlanScheduleStore(store),
    records: createTickRecords(store),
    schedules: {
      put: (_tenant: TenantId, name: string, timing: Timing) => tell(name, timing),
      remove: (_tenant: TenantId, name: string) => tell(name, undefined),
    },
  }
  const schedules = new PlanSchedules({ ...parts, plans, files: NO_FILES, now: () => state.now, leastSecs: LEAST_SECS })
  const submission = {
    ...parts,
    plans,
    events: NO_EVENTS,
    queue: { add: async (job: Job) => void jobs.push(job) },
    idempotency: createIdempotency(store),
    now: () => state.now,
  }
  const ticks = new PlanTicks({
    ...submission,
    async admits() {
      state.counted++
      return admits()
    },
    metrics: { countDivided: (name, value) => void outcomes.push(`${name} ${value}`) },
  })
  const fire = (name: string, at: number) => ticks.fire({ kind: 'schedule', tenant, id: tickId(tenant, { name, at }) })
  const run = (name: string, idempotencyKey?: string) =>
    runSchedule(tenant, name, { ...submission, subject: 'ada', idempotencyKey })
  const stored = async (): Promise<(PlanRecord | undefined)[]> => {
    const { plans: heads } = await plans.list(tenant, { limit: 200 })
    return Promise.all(heads.map(({ plan_id }) => plans.get(tenant, plan_id)))
  }
  return { tenant, plans, schedules, records: parts.records, told, jobs, outcomes, state, fire, run, stored }
}
