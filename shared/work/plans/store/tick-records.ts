import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { CollectionSpec, Store } from '../../../platform/store/port.ts'
import { replaceDoc } from '../../../platform/store/replace.ts'
import type { SkipReason } from '../port.ts'

/** The outcomes of each schedule's ticks. They are apart from the schedules, whose plans are long. */
export const PLAN_SCHEDULE_TICKS: CollectionSpec = {
  name: 'plan_schedule_ticks',
  key: ['name'],
  order: { within: [], by: ['name'], direction: 'ascending' },
}

/** A tick that submitted no plan; its time is in ISO 8601. */
export type Skip = { at: string; reason: SkipReason }

export type TickRecord = {
  /** The plan that was submitted last; `null` before the first one. */
  last_plan_id: string | null
  skipped_ticks: number
  /** `null` when none was skipped. */
  last_skip: Skip | null
}

/** Records the ticks of schedules. Every method throws `unavailable` when the store does not answer. */
export interface TickRecords {
  get(tenant: TenantId, name: string): Promise<TickRecord>
  /** The records by the names of their schedules, up to and with `last` in the order of names. A schedule without ticks has none. */
  upTo(tenant: TenantId, last: string): Promise<ReadonlyMap<string, TickRecord>>
  submitted(tenant: TenantId, name: string, planId: string): Promise<void>
  /** Counts a skipped tick, once however often it is handed out. */
  skipped(tenant: TenantId, name: string, skip: Skip): Promise<void>
  remove(tenant: TenantId, name: string): Promise<void>
}

export const NO_TICKS: TickRecord = { last_plan_id: null, skipped_ticks: 0, last_skip: null }
const MAX_PAGE = 1_000

export function createTickRecords(store: Store): TickRecords {
  const records = store.collection(PLAN_SCHEDULE_TICKS)
  const change = async (tenant: TenantId, name: string, next: (record: TickRecord) => TickRecord) => {
    await replaceDoc(records, tenant, { key: { name }, change: (doc) => next(doc ? toRecord(doc) : NO_TICKS) })
  }
  return {
    async get(tenant, name) {
      const found = await records.get(tenant, { name })
      return found ? toRecord(found.doc) : NO_TICKS
    },
    async upTo(tenant, last) {
      const page = await records.page(tenant, { until: [last], limit: MAX_PAGE })
      return new Map(page.map(({ doc }) => [String(doc['name']), toRecord(doc)]))
    },
    submitted: (tenant, name, planId) => change(tenant, name, (record) => ({ ...record, last_plan_id: planId })),
    skipped: (tenant, name, skip) =>
      change(tenant, name, (record) =>
        record.last_skip?.at === skip.at
          ? record
          : { ...record, skipped_ticks: record.skipped_ticks + 1, last_skip: skip },
      ),
    async remove(tenant, name) {
      await records.delete(tenant, { name })
    },
  }
}

function toRecord(doc: JsonObject): TickRecord {
  const { last_plan_id, skipped_ticks, last_skip } = doc as TickRecord
  return { last_plan_id, skipped_ticks, last_skip }
}
