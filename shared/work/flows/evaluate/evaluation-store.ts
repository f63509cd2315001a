import { startOfPage, toPage } from '../../../kernel/cursor.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Store } from '../../../platform/store/port.ts'
import type { EvaluatedRun, EvaluationReport } from './report.ts'

/** The evaluations of each flow, for a year. Those of a deleted flow can no longer be read. */
export const FLOW_EVALUATIONS: CollectionSpec = {
  name: 'flow_evaluations',
  key: ['flow_uid', 'id'],
  order: { within: ['flow_uid'], by: ['evaluated_at', 'id'], direction: 'descending' },
  ttlSecs: 365 * 24 * 3_600,
}

/** One item of `GET /flows/{name}/evaluations`: a report without the values that differ, which only its caller has seen (D26.2). */
export type EvaluationRecord = Omit<EvaluationReport, 'runs'> & {
  id: string
  subject: string
  evaluated_at: string
  runs: (Omit<EvaluatedRun, 'differences'> & { difference_count: number })[]
}

export type EvaluationPage = { evaluations: EvaluationRecord[]; next_cursor: string | null }

/** Stores evaluations, by the flow's uid. */
export class FlowEvaluationStore {
  readonly #evaluations: Collection

  constructor(store: Store) {
    this.#evaluations = store.collection(FLOW_EVALUATIONS)
  }

  async add(tenant: TenantId, uid: string, evaluation: EvaluationRecord): Promise<void> {
    await this.#evaluations.insert(tenant, { flow_uid: uid, ...evaluation })
  }

  /** Newest first. Throws `invalid_request` for an invalid cursor. */
  async page(
    tenant: TenantId,
    uid: string,
    { limit, cursor }: { limit: number; cursor?: string | undefined },
  ): Promise<EvaluationPage> {
    const found = await this.#evaluations.page(tenant, {
      where: { flow_uid: uid },
      after: startOfPage(cursor, ['string', 'string']),
      limit: limit + 1,
    })
    const records = found.map(({ doc }) => toRecord(doc))
    const { page: evaluations, next_cursor } = toPage(records, limit, ({ evaluated_at, id }) => [evaluated_at, id])
    return { evaluations, next_cursor }
  }
}

function toRecord(doc: JsonObject): EvaluationRecord {
  const { flow_uid: _uid, ...record } = doc
  return record as EvaluationRecord
}
