import { createHash } from 'node:crypto'
import { conflict, hasKind } from '../../kernel/errors.ts'
import { newPlanId } from '../../kernel/ids.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Job, Schedules } from '../queue/port.ts'
import { readTick } from '../queue/schedule-times.ts'
import { isEnded } from './plan-runs.ts'
import type { SkipReason } from './port.ts'
import { noSchedule } from './schedules.ts'
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
   * Submits the plan of a tick only once, even if the tick is handed out again, or skips the tick. Does nothing when the schedule was deleted or is
   * paused. Throws `unavailable` when the store does not answer.
   */
  async fire(job: Job): Promise<void> {
    const { store, schedules, records, metrics } = this.#deps
    const { tenant } = job
    const { name, at } = readTick(job)
    const schedule = await store.get(tenant, name)
    if (!schedule) return schedules.remove(tenant, name)
    if (schedule.is_paused) return
    const tick = { name, plan: schedule.plan, subject: NOBODY, planId: planIdOf([tenant, job.id]), isRepeated: true }
    const end = await submitLast(tenant, tick, this.#deps).catch((cause: unknown) => {
      if (hasKind(cause, 'rate_limit')) return 'plan_limit' as const
      throw cause
    })
    const skipped = typeof end === 'string' ? end : undefined
    metrics.countDivided('schedule_ticks', skipped ?? 'submitted')
    if (skipped) await records.skipped(tenant, name, { at: new Date(at).toISOString(), reason: skipped })
  }
}

type RunDeps = SubmitDeps & { store: Pick<PlanScheduleStore, 'get'>; records: TickRecords }

/**
 * Submits the plan of a schedule now, as its last one, also while it is paused (D12.5). Requests with one key submit one plan. Throws `not_found`,
 * `conflict` while the previous plan has not ended, and the errors of `submitPlan`.
 */
export async function runSchedule(
  tenant: TenantId,
  name: string,
  { subject, idempotencyKey: key, ...deps }: RunDeps & { subject: string; idempotencyKey: string | undefined },
): Promise<{ planId: string; isReplayed: boolean }> {
  const schedule = await deps.store.get(tenant, name)
  if (!schedule) throw noSchedule(name)
  const planId = key === undefined ? newPlanId() : planIdOf([tenant, name, key])
  const isRepeated = key !== undefined // Without a key a refused request must have no effect (D36.1).
  const end = await submitLast(tenant, { name, plan: schedule.plan, planId, subject, isRepeated }, deps)
  if (typeof end === 'string')
    throw conflict(`the plan before of the schedule ${name} has not ended: wait for it, or cancel it`)
  return { planId, ...end }
}

type Tick = { name: string; plan: PlanRequest; planId: string; subject: string; isRepeated: boolean }
type TickDeps = SubmitDeps & { records: TickRecords; admits?(tenant: TenantId): Promise<boolean> }

/** Submits a plan as the last one of its schedule, or returns why it does not. Throws the errors of `submitPlan`. */
async function submitLast(
  tenant: TenantId,
  tick: Tick,
  deps: TickDeps,
): Promise<Exclude<SkipReason, 'plan_limit'> | { isReplayed: boolean }> {
  const { plans, records, admits, now } = deps
  const { name, planId } = tick
  const record = await records.getClaimed(tenant, name)
  const { last_plan_id: lastId } = record
  const claim = { planId, lastId, untilMs: now().getTime() + CLAIMED_MS }
  if (await plans.get(tenant, planId)) {
    // The plan was already submitted. Another one may have come since, so only a record without a plan is completed.
    if (lastId === null) await records.claim(tenant, name, claim)
    return { isReplayed: true }
  }
  if (lastId !== planId && (await continues(tenant, record, deps))) return 'plan_not_ended'
  if ((await admits?.(tenant)) === false) return 'rate_limit'
  if (!(await records.claim(tenant, name, claim))) return 'plan_not_ended' // Another tick came first, at the same moment.
  return submitClaimed(tenant, { ...tick, lastId }, deps)
}

/** Whether the last plan has not ended, or is about to be stored. */
async function continues(
  tenant: TenantId,
  { last_plan_id: lastId, claimed_until_ms }: ClaimedRecord,
  { plans, now }: TickDeps,
): Promise<boolean> {
  if (lastId === null) return false
  const last = await plans.get(tenant, lastId)
  return last ? !isEnded(last) : now().getTime() < claimed_until_ms
}

async function submitClaimed(
  tenant: TenantId,
  { name, plan: request, lastId, ...tick }: Tick & { lastId: string | null },
  deps: TickDeps,
): Promise<{ isReplayed: boolean }> {
  try {
    const { isReplayed } = await submitPlan(tenant, { request, ...tick }, deps)
    return { isReplayed }
  } catch (cause) {
    const { planId, isRepeated } = tick
    if (!isRepeated || !(await deps.plans.get(tenant, planId)))
      await deps.records.release(tenant, name, { planId, lastId })
    throw cause
  }
}

/** A plan is stored long before this time, unless its process has died; the tick is then handed out again. */
const CLAIMED_MS = 60_000

/** The id of the plan of a tick or a key: always the same for the same tick or key. */
const planIdOf = (names: readonly string[]): string =>
  newPlanId(createHash('sha256').update(JSON.stringify(names)).digest('hex'))
