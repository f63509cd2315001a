import { createHash } from 'node:crypto'
import { decodeCursor, encodeCursor } from '../cursor.ts'
import { type AppError, notFound } from '../errors.ts'
import { newPlanId } from '../ids.ts'
import type { Job, Schedules } from '../queue/port.ts'
import { readTick, readTiming, type TimingInput } from '../queue/schedule-times.ts'
import type { PlanSchedule, PlanScheduleStore } from '../store/plan-schedules.ts'
import type { TenantId } from '../tenant.ts'
import { checkedPlan, NOBODY, type PlanRequest, type SubmitDeps, submitPlan } from './submit.ts'

/** Body of `PUT /plans/schedules/{name}`, checked against its schema. */
export type ScheduleRequest = TimingInput & { plan: PlanRequest }

/** A schedule as the API shows it. */
export type ScheduleView = Omit<PlanSchedule, 'timing'> & TimingInput

export type PlanSchedulesDeps = SubmitDeps & { store: PlanScheduleStore; schedules: Pick<Schedules, 'put' | 'remove'> }

/**
 * The schedules by which plans are submitted. What is stored counts: a queue that could not be told of a change is told by `restore`. Every
 * method throws `unavailable` when the store does not answer.
 */
export class PlanSchedules {
  readonly #deps: PlanSchedulesDeps

  constructor(deps: PlanSchedulesDeps) {
    this.#deps = deps
  }

  /** Throws `invalid_request` that names the field, and `conflict` when the tenant has too many schedules. */
  async put(tenant: TenantId, name: string, { plan, ...times }: ScheduleRequest): Promise<ScheduleView> {
    const timing = readTiming(times)
    const schedule = await this.#deps.store.put(tenant, { name, timing, plan: checkedPlan(plan, '/plan') })
    await this.#deps.schedules.put(tenant, name, timing).catch(() => {})
    return viewOf(schedule)
  }

  async get(tenant: TenantId, name: string): Promise<ScheduleView> {
    const schedule = await this.#deps.store.get(tenant, name)
    if (!schedule) throw noSchedule(name)
    return viewOf(schedule)
  }

  /** In the order of their names. Throws `invalid_request` for an invalid cursor. */
  async list(
    tenant: TenantId,
    { limit, cursor }: { limit: number; cursor?: string },
  ): Promise<{ schedules: ScheduleView[]; next_cursor: string | null }> {
    const after = cursor === undefined ? undefined : String(decodeCursor(cursor, ['string'])[0])
    const found = await this.#deps.store.list(tenant, { limit: limit + 1, after })
    const page = found.slice(0, limit)
    const last = found.length > limit ? page.at(-1) : undefined
    return { schedules: page.map(viewOf), next_cursor: last ? encodeCursor([last.name]) : null }
  }

  async remove(tenant: TenantId, name: string): Promise<void> {
    if (!(await this.#deps.store.remove(tenant, name))) throw noSchedule(name)
    await this.#deps.schedules.remove(tenant, name).catch(() => {})
  }

  /** Submits the plan of a tick, once however often the tick is handed out. Does nothing when the schedule was deleted. */
  async fire(job: Job): Promise<void> {
    const { tenant, id } = job
    const { name } = readTick(job)
    const schedule = await this.#deps.store.get(tenant, name)
    if (!schedule) return this.#deps.schedules.remove(tenant, name)
    const digits = createHash('sha256')
      .update(JSON.stringify([tenant, id]))
      .digest('hex')
    const submission = { request: schedule.plan, subject: NOBODY, planId: newPlanId(digits) }
    await submitPlan(tenant, submission, this.#deps)
  }

  /** Tells the queue of all stored schedules: at start, and when it may have lost some. Throws `unavailable`. */
  async restore(): Promise<void> {
    for await (const { tenant, schedule } of this.#deps.store.all()) {
      await this.#deps.schedules.put(tenant, schedule.name, schedule.timing)
    }
  }
}

const viewOf = ({ name, timing, plan, created_at, updated_at }: PlanSchedule): ScheduleView => ({
  name,
  ...timing,
  plan,
  created_at,
  updated_at,
})

const noSchedule = (name: string): AppError => notFound(`no schedule ${name}: GET /plans/schedules lists the schedules`)
