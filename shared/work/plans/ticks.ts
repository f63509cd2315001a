import { createHash } from 'node:crypto'
import { hasKind } from '../../kernel/errors.ts'
import { newPlanId } from '../../kernel/ids.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Job, Schedules } from '../queue/port.ts'
import { readTick } from '../queue/schedule-times.ts'
import { isEnded } from './plan-runs.ts'
import type { SkipReason } from './port.ts'
import type { PlanScheduleStore } from './store/plan-schedules.ts'
import type { TickRecord, TickRecords } from './store/tick-records.ts'
import { NOBODY, type PlanRequest, type SubmitDeps, submitPlan } from './submit.ts'

export type PlanTicksDeps = SubmitDeps & {
  store: Pick<PlanScheduleStore, 'get'>
  records: TickRecords
  schedules: Pick<Schedules, 'remove'>
  /** Counts a request of the tenant. Returns `false` when its rate is used up. */
  admits(tenant: TenantId): Promise<boolean>
  metrics: Pick<Metrics, 'countDivided'>
}

/** Submits the plans of schedules at their ticks. */
export class PlanTicks {
  readonly #deps: PlanTicksDeps

  constructor(deps: PlanTicksDeps) {
    this.#deps = deps
  }

  /**
   * Submits the plan of a tick, once however often the tick is handed out, or skips the tick. Does nothing when the schedule was deleted or is paused.
   * Throws `unavailable` when the store does not answer.
   */
  async fire(job: Job): Promise<void> {
    const { store, schedules, records, metrics } = this.#deps
    const { tenant } = job
    const { name, at } = readTick(job)
    const schedule = await store.get(tenant, name)
    if (!schedule) return schedules.remove(tenant, name)
    if (schedule.is_paused) return
    const planId = planIdOf(job)
    const skipped = await this.#trySubmit(tenant, {
      plan: schedule.plan,
      planId,
      record: await records.get(tenant, name),
    })
    metrics.countDivided('schedule_ticks', skipped ?? 'submitted')
    if (skipped) await records.skipped(tenant, name, { at: new Date(at).toISOString(), reason: skipped })
    else await records.submitted(tenant, name, planId)
  }

  /** Returns why the tick is skipped; `undefined` when its plan is stored. */
  async #trySubmit(tenant: TenantId, { plan, planId, record }: Tick): Promise<SkipReason | undefined> {
    const { plans, admits } = this.#deps
    if (await plans.get(tenant, planId)) return undefined // The tick was handed out before.
    const { last_plan_id: lastId } = record
    const last = lastId === null ? undefined : await plans.get(tenant, lastId)
    if (last && !isEnded(last)) return 'plan_not_ended'
    if (!(await admits(tenant))) return 'rate_limit'
    try {
      await submitPlan(tenant, { request: plan, subject: NOBODY, planId }, this.#deps)
      return undefined
    } catch (cause) {
      if (hasKind(cause, 'rate_limit')) return 'plan_limit'
      throw cause
    }
  }
}

type Tick = { plan: PlanRequest; planId: string; record: TickRecord }

/** The id of the plan of a tick: the same wherever the tick is handed out. */
const planIdOf = ({ tenant, id }: Job): string =>
  newPlanId(
    createHash('sha256')
      .update(JSON.stringify([tenant, id]))
      .digest('hex'),
  )
