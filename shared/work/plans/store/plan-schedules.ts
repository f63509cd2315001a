import { setImmediate } from 'node:timers/promises'
import { conflict } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { SYSTEM_TENANT, type TenantId } from '../../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Store } from '../../../platform/store/port.ts'
import { replaceDoc } from '../../../platform/store/replace.ts'
import type { Timing } from '../../queue/port.ts'
import type { PlanRequest } from '../submit.ts'

const BY_NAME = { key: ['name'], order: { within: [], by: ['name'], direction: 'ascending' } } as const

export const PLAN_SCHEDULES: CollectionSpec = { name: 'plan_schedules', ...BY_NAME }

/** The tenants that have ever stored a schedule; kept under the system tenant. */
export const SCHEDULING_TENANTS: CollectionSpec = { name: 'scheduling_tenants', ...BY_NAME }

/** A schedule and the plan that it submits. Times are in ISO 8601. */
export type PlanSchedule = {
  name: string
  timing: Timing
  plan: PlanRequest
  /** A paused schedule has no ticks. */
  is_paused: boolean
  created_at: string
  updated_at: string
}

/** Stores the schedules of plans. Every method throws `unavailable` when the store does not answer. */
export interface PlanScheduleStore {
  /** Creates or replaces a schedule. Throws `conflict` when the tenant has too many. */
  put(tenant: TenantId, schedule: Omit<PlanSchedule, 'created_at' | 'updated_at'>): Promise<PlanSchedule>
  get(tenant: TenantId, name: string): Promise<PlanSchedule | undefined>
  /** In the order of their names, from after the given one on. */
  list(tenant: TenantId, query: { limit: number; after?: string | undefined }): Promise<PlanSchedule[]>
  /** Returns whether it existed. */
  remove(tenant: TenantId, name: string): Promise<boolean>
  /** The schedules of all tenants. */
  all(): AsyncGenerator<{ tenant: TenantId; schedule: PlanSchedule }, void, undefined>
}

/** Concurrent creations may exceed it. */
export const MAX_SCHEDULES = 100
const TENANT_PAGE = 200
const SCHEDULE_PAGE = 10

export function createPlanScheduleStore(store: Store, now: () => Date = () => new Date()): PlanScheduleStore {
  const schedules = store.collection(PLAN_SCHEDULES)
  const tenants = store.collection(SCHEDULING_TENANTS)
  const list: PlanScheduleStore['list'] = async (tenant, { limit, after }) => {
    const page = await schedules.page(tenant, { limit, ...(after !== undefined && { after: [after] }) })
    return page.map(({ doc }) => toSchedule(doc))
  }
  const prepareInsert = async (tenant: TenantId) => {
    if ((await list(tenant, { limit: MAX_SCHEDULES })).length >= MAX_SCHEDULES)
      throw conflict(`a tenant has at most ${MAX_SCHEDULES} schedules; delete one first`)
    // Stored before the first schedule, so that every tenant with schedules is in the list.
    await tenants.insert(SYSTEM_TENANT, { name: tenant })
  }
  return {
    async put(tenant, { name, ...changes }) {
      const at = now().toISOString()
      const doc = await replaceDoc(schedules, tenant, {
        key: { name },
        change: (stored) => ({ ...changes, created_at: stored?.['created_at'] ?? at, updated_at: at }),
        beforeInsert: () => prepareInsert(tenant),
      })
      return toSchedule(doc)
    },
    async get(tenant, name) {
      const found = await schedules.get(tenant, { name })
      return found && toSchedule(found.doc)
    },
    list,
    remove: (tenant, name) => schedules.delete(tenant, { name }),
    async *all() {
      for await (const tenant of namesOf(tenants))
        for await (const schedule of schedulesOf(tenant, list)) yield { tenant, schedule }
    },
  }
}

/** Schedules that were stored by an earlier version have no `is_paused`. */
const toSchedule = (doc: JsonObject): PlanSchedule => ({
  is_paused: false,
  ...(doc as Omit<PlanSchedule, 'is_paused'>),
})

/** Plans may be long, so other work may run between two pages. */
async function* schedulesOf(
  tenant: TenantId,
  list: PlanScheduleStore['list'],
): AsyncGenerator<PlanSchedule, void, undefined> {
  for (let after: string | undefined; ; await setImmediate()) {
    const page = await list(tenant, { limit: SCHEDULE_PAGE, after })
    yield* page
    after = page.at(-1)?.name
    if (page.length < SCHEDULE_PAGE) return
  }
}

async function* namesOf(tenants: Collection): AsyncGenerator<TenantId, void, undefined> {
  let after: string | undefined
  do {
    const page = await tenants.page(SYSTEM_TENANT, {
      limit: TENANT_PAGE,
      ...(after !== undefined && { after: [after] }),
    })
    const names = page.map(({ doc }) => String(doc['name']) as TenantId)
    yield* names
    after = names.length === TENANT_PAGE ? names.at(-1) : undefined
  } while (after !== undefined)
}
