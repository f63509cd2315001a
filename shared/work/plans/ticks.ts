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
import type { ClaimedRecord, TickRecords } from './store/tick-records.ts'
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
    const tick = { name, plan: schedule.plan, planId: planIdOf(job) }
    const skipped = await this.#trySubmit(tenant, tick)
    metrics.countDivided('schedule_ticks', skipped ?? 'submitted')
    if (skipped) await records.skipped(tenant, name, { at: new Date(at).toISOString(), reason: skipped })
  }

  /** Returns why the tick is skipped; `undefined` when its plan is stored. */
  async #trySubmit(tenant: TenantId, tick: Tick): Promise<SkipReason | undefined> {
    const { plans, records, admits, now } = this.#deps
    const { name, planId } = tick
    const record = await records.getClaimed(tenant, name)
    const { last_plan_id: lastId } = record
    const claim = { planId, lastId, untilMs: now().getTime() + CLAIMED_MS }
    if (await plans.get(tenant, planId)) {
      // The tick was handed out before. Another may have come since, so that only a record without any plan is completed.
      if (lastId === null) await records.claim(tenant, name, claim)
      return undefined
    }
    if (lastId !== planId && (await this.#continues(tenant, record))) return 'plan_not_ended'
    if (!(await admits(tenant))) return 'rate_limit'
    if (!(await records.claim(tenant, name, claim))) return 'plan_not_ended' // Another tick came first, at the same moment.
    return this.#submitClaimed(tenant, tick, lastId)
  }

  /** Whether the last plan has not ended, or another tick is about to store it. */
  async #continues(tenant: TenantId, { last_plan_id: lastId, claimed_until_ms }: ClaimedRecord): Promise<boolean> {
    const { plans, now } = this.#deps
    if (lastId === null) return false
    const last = await plans.get(tenant, lastId)
    return last ? !isEnded(last) : now().getTime() < claimed_until_ms
  }

  async #submitClaimed(tenant: TenantId, { name, plan, planId }: Tick, lastId: string | null) {
    const { plans, records } = this.#deps
    try {
      await submitPlan(tenant, { request: plan, subject: NOBODY, planId }, this.#deps)
      return undefined
    } catch (cause) {
      if (!(await plans.get(tenant, planId))) await records.release(tenant, name, { planId, lastId })
      if (hasKind(cause, 'rate_limit')) return 'plan_limit'
      throw cause
    }
  }
}

type Tick = { name: string; plan: PlanRequest; planId: string }

/** A plan is stored long before that, unless its process has died. The tick is handed out again then. */
const CLAIMED_MS = 60_000

/** The id of the plan of a tick: the same wherever the tick is handed out. */
const planIdOf = ({ tenant, id }: Job): string =>
  newPlanId(
    createHash('sha256')
      .update(JSON.stringify([tenant, id]))
      .digest('hex'),
  )
