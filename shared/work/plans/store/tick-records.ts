import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { CollectionSpec, Store } from '../../../platform/store/port.ts'
import { replaceDoc } from '../../../platform/store/replace.ts'
import type { SkipReason } from '../port.ts'

/** The outcomes of each schedule's ticks. They are stored separately from the schedules, whose plans are long. */
export const PLAN_SCHEDULE_TICKS: CollectionSpec = {
  name: 'plan_schedule_ticks',
  key: ['name'],
  order: { within: [], by: ['name'], direction: 'ascending' },
}

/** The plan that a tick is about to submit, which then becomes the last one. */
export type Claim = {
  planId: string
  lastId: string | null
  /** From this time on, in milliseconds since 1970, other ticks may assume that the plan will never be stored. */
  untilMs: number
}

/** A tick that submitted no plan; its time is in ISO 8601. */
export type Skip = { at: string; reason: SkipReason }

export type TickRecord = {
  /** The plan that was submitted last, or is about to be; `null` before the first one. */
  last_plan_id: string | null
  skipped_ticks: number
  /** `null` when none was skipped. */
  last_skip: Skip | null
}

/** `claimed_until_ms`: until then the last plan counts as one that continues, although it is not stored yet. */
export type ClaimedRecord = TickRecord & { claimed_until_ms: number }

/** Records the ticks of schedules. Every method throws `unavailable` when the store does not answer. */
export interface TickRecords {
  get(tenant: TenantId, name: string): Promise<TickRecord>
  getClaimed(tenant: TenantId, name: string): Promise<ClaimedRecord>
  /** The records by the names of their schedules, up to `last` (inclusive) in the order of names. A schedule without ticks has none. */
  upTo(tenant: TenantId, last: string): Promise<ReadonlyMap<string, TickRecord>>
  /**
   * Makes the plan the last one, if `lastId` still is the last one or the plan already is. Returns whether it is now: of two ticks at the same moment
   * one gets `false`.
   */
  claim(tenant: TenantId, name: string, claim: Claim): Promise<boolean>
  /** Removes the claim of a plan that was not stored. Does nothing when another plan has become the last one. */
  release(tenant: TenantId, name: string, claim: Pick<Claim, 'planId' | 'lastId'>): Promise<void>
  /** Counts a skipped tick only once, even if it is handed out again. */
  skipped(tenant: TenantId, name: string, skip: Skip): Promise<void>
  remove(tenant: TenantId, name: string): Promise<void>
}

export const NO_TICKS: TickRecord = { last_plan_id: null, skipped_ticks: 0, last_skip: null }
const MAX_PAGE = 1_000

export function createTickRecords(store: Store): TickRecords {
  const records = store.collection(PLAN_SCHEDULE_TICKS)
  const change = async (tenant: TenantId, name: string, next: (record: ClaimedRecord) => ClaimedRecord) =>
    toClaimed(await replaceDoc(records, tenant, { key: { name }, change: (doc) => next(toClaimed(doc)) }))
  return {
    async get(tenant, name) {
      const found = await records.get(tenant, { name })
      return found ? toRecord(found.doc) : NO_TICKS
    },
    async getClaimed(tenant, name) {
      return toClaimed((await records.get(tenant, { name }))?.doc)
    },
    async upTo(tenant, last) {
      const page = await records.page(tenant, { until: [last], limit: MAX_PAGE })
      return new Map(page.map(({ doc }) => [String(doc['name']), toRecord(doc)]))
    },
    async claim(tenant, name, { planId, lastId, untilMs }) {
      const { last_plan_id } = await change(tenant, name, (record) =>
        record.last_plan_id === lastId ? { ...record, last_plan_id: planId, claimed_until_ms: untilMs } : record,
      )
      return last_plan_id === planId
    },
    async release(tenant, name, { planId, lastId }) {
      await change(tenant, name, (record) =>
        record.last_plan_id === planId ? { ...record, last_plan_id: lastId, claimed_until_ms: 0 } : record,
      )
    },
    async skipped(tenant, name, skip) {
      await change(tenant, name, (record) =>
        record.last_skip?.at === skip.at
          ? record
          : { ...record, skipped_ticks: record.skipped_ticks + 1, last_skip: skip },
      )
    },
    async remove(tenant, name) {
      await records.delete(tenant, { name })
    },
  }
}

function toRecord(doc: JsonObject): TickRecord {
  const { last_plan_id, skipped_ticks, last_skip } = doc as TickRecord
  return { last_plan_id, skipped_ticks, last_skip }
}

/** Records of an earlier version have no claim. */
const toClaimed = (doc: JsonObject | undefined): ClaimedRecord => ({
  ...(doc ? toRecord(doc) : NO_TICKS),
  claimed_until_ms: Number(doc?.['claimed_until_ms'] ?? 0),
})
