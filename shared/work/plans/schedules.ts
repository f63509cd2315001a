import { setImmediate } from 'node:timers/promises'
import { encodeCursor, startOfPage } from '../../kernel/cursor.ts'
import { AppError, notFound } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Schedules } from '../queue/port.ts'
import { nextTicks, readTiming, slowedTiming, type TimingInput } from '../queue/schedule-times.ts'
import type { PlanHead, Plans } from './port.ts'
import type { PlanSchedule, PlanScheduleStore } from './store/plan-schedules.ts'
import { NO_TICKS, type TickRecord, type TickRecords } from './store/tick-records.ts'
import { checkedPlan, type PlanRequest, type StepFiles, stepFiles } from './submit.ts'
import { type PlanSummary, planSummary } from './view.ts'

/** Body of `PUT /plans/schedules/{name}`, checked against its schema. */
export type ScheduleRequest = TimingInput & { plan: PlanRequest; paused?: boolean }

/** A schedule in the form in which the API shows it. */
export type ScheduleView = Omit<PlanSchedule, 'timing' | 'is_paused'> &
  TimingInput &
  TickRecord & {
    paused: boolean
    /** In ISO 8601. Empty while it is paused. */
    next_ticks: string[]
    /** `null` before the first one, and when it is not kept any more. */
    last_plan: PlanSummary | null
  }

export type PlanSchedulesDeps = {
  files: StepFiles
  store: PlanScheduleStore
  records: Pick<TickRecords, 'get' | 'upTo' | 'remove'>
  schedules: Pick<Schedules, 'put' | 'remove'>
  plans: Pick<Plans, 'heads'>
  now: () => Date
  /** The least time between two ticks. */
  leastSecs: number
}

type LastPlans = ReadonlyMap<string, PlanHead>

type Page = { page: PlanSchedule[]; hasMore: boolean }

/** The approximate size of the schedules on one page. */
const MAX_PAGE_BYTES = 1024 * 1024
const READ_AT_ONCE = 5

/** How many ticks are shown. */
const NEXT_TICKS = 5

/** The most bytes of its JSON in UTF-8, because it is stored again with each plan that it submits. */
const MAX_PLAN_BYTES = 256 * 1024

/**
 * The schedules by which plans are submitted. The store decides: a change that could not be sent to the queue is sent by `restore`. Every
 * method throws `unavailable` when the store does not answer.
 */
export class PlanSchedules {
  readonly #deps: PlanSchedulesDeps

  constructor(deps: PlanSchedulesDeps) {
    this.#deps = deps
  }

  /** Throws `invalid_request` that names the field, and `conflict` when the tenant has too many schedules. */
  async put(
    tenant: TenantId,
    name: string,
    { plan, paused = false, ...times }: ScheduleRequest,
  ): Promise<ScheduleView> {
    const { store, records, schedules, leastSecs } = this.#deps
    const timing = readTiming(times, leastSecs)
    await stepFiles(tenant, plan, { files: this.#deps.files, at: '/plan' })
    const schedule = await store.put(tenant, { name, timing, plan: shortPlan(plan), is_paused: paused })
    const told = paused ? schedules.remove(tenant, name) : schedules.put(tenant, name, slowedTiming(timing, leastSecs))
    await told.catch(() => {})
    return this.#view(tenant, schedule, await records.get(tenant, name))
  }

  async get(tenant: TenantId, name: string): Promise<ScheduleView> {
    const { store, records } = this.#deps
    const [schedule, record] = await Promise.all([store.get(tenant, name), records.get(tenant, name)])
    if (!schedule) throw noSchedule(name)
    return this.#view(tenant, schedule, record)
  }

  /** In the order of their names; fewer than requested when their plans are long. Throws `invalid_request` for an invalid cursor. */
  async list(
    tenant: TenantId,
    { limit, cursor }: { limit: number; cursor?: string },
  ): Promise<{ schedules: ScheduleView[]; next_cursor: string | null }> {
    const [after] = startOfPage(cursor, ['string']) ?? []
    const { page, hasMore } = await this.#page(tenant, limit, after)
    const last = page.at(-1)?.name
    if (last === undefined) return { schedules: [], next_cursor: null }
    const ticks = await this.#deps.records.upTo(tenant, last)
    const recordOf = ({ name }: PlanSchedule) => ticks.get(name) ?? NO_TICKS
    const lastPlans = await this.#lastPlans(tenant, page.map(recordOf))
    const schedules: ScheduleView[] = []
    for (const schedule of page) {
      schedules.push(this.#viewOf(schedule, recordOf(schedule), lastPlans))
      await setImmediate() // Computing the ticks of a rare pattern takes milliseconds, so other work may run between two schedules.
    }
    return { schedules, next_cursor: hasMore ? encodeCursor([last]) : null }
  }

  async #view(tenant: TenantId, schedule: PlanSchedule, record: TickRecord): Promise<ScheduleView> {
    return this.#viewOf(schedule, record, await this.#lastPlans(tenant, [record]))
  }

  #lastPlans(tenant: TenantId, records: readonly TickRecord[]): Promise<LastPlans> {
    return this.#deps.plans.heads(
      tenant,
      records.flatMap(({ last_plan_id: id }) => id ?? []),
    )
  }

  #viewOf(
    { name, timing, plan, is_paused: paused, created_at, updated_at }: PlanSchedule,
    record: TickRecord,
    lastPlans: LastPlans,
  ): ScheduleView {
    const { now, leastSecs } = this.#deps
    const ticks = paused ? [] : nextTicks(slowedTiming(timing, leastSecs), now().getTime(), NEXT_TICKS)
    const next_ticks = ticks.map((tick) => new Date(tick).toISOString())
    const last = lastPlans.get(record.last_plan_id ?? '')
    const last_plan = last ? planSummary(last) : null
    return { name, ...timing, paused, next_ticks, plan, ...record, last_plan, created_at, updated_at }
  }

  /** Reads a few schedules at a time, up to one more than the page has. */
  async #page(tenant: TenantId, limit: number, after: string | undefined): Promise<Page> {
    const found: PlanSchedule[] = []
    for (let bytes = 0; bytes < MAX_PAGE_BYTES && found.length <= limit; ) {
      const asked = Math.min(READ_AT_ONCE, limit + 1 - found.length)
      const read = await this.#deps.store.list(tenant, { limit: asked, after: found.at(-1)?.name ?? after })
      found.push(...read)
      if (read.length < asked) return { page: found, hasMore: false }
      bytes += Buffer.byteLength(JSON.stringify(read))
    }
    return { page: found.slice(0, -1), hasMore: true }
  }

  async remove(tenant: TenantId, name: string): Promise<void> {
    const { store, records, schedules } = this.#deps
    if (!(await store.remove(tenant, name))) throw noSchedule(name)
    await records.remove(tenant, name)
    await schedules.remove(tenant, name).catch(() => {})
  }

  /**
   * Sends all stored schedules to the queue: at start, and when it may have lost some. Schedules with more frequent ticks than are
   * allowed now are slowed down. Throws `unavailable`.
   */
  async restore(): Promise<void> {
    const { store, schedules, leastSecs } = this.#deps
    for await (const { tenant, schedule } of store.all())
      if (!schedule.is_paused) await schedules.put(tenant, schedule.name, slowedTiming(schedule.timing, leastSecs))
  }
}

function shortPlan(request: PlanRequest): PlanRequest {
  const plan = checkedPlan(request, '/plan')
  const bytes = Buffer.byteLength(JSON.stringify(plan))
  if (bytes <= MAX_PLAN_BYTES) return plan
  const message = `the plan of a schedule has at most ${MAX_PLAN_BYTES} bytes, not ${bytes}: shorten its prompts`
  throw new AppError('invalid_request', message, { status: 413, param: '/plan' })
}

export const noSchedule = (name: string): AppError =>
  notFound(`no schedule ${name}: GET /plans/schedules lists the schedules`)
