import { newId } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { StoredFlows } from '../stored-flows.ts'
import type { EvaluationPage, EvaluationRecord, FlowEvaluationStore } from './evaluation-store.ts'
import type { EvaluatedRun, EvaluationReport } from './report.ts'

/** A report as it is kept: without the outputs' values. */
export const recordOf = (
  { runs, ...report }: EvaluationReport,
  { subject, at }: { subject: string; at: Date },
): EvaluationRecord => ({
  id: newId('eval'),
  ...report,
  subject,
  evaluated_at: at.toISOString(),
  runs: runs.map(withoutValues),
})

const withoutValues = ({ differences, ...run }: EvaluatedRun) => ({ ...run, difference_count: differences.length })

type HistoryDeps = { library: Pick<StoredFlows, 'get'>; store: Pick<FlowEvaluationStore, 'page'> }

/** Lists the evaluations of a flow (D26.2). */
export class EvaluationHistory {
  readonly #deps: HistoryDeps

  constructor(deps: HistoryDeps) {
    this.#deps = deps
  }

  /** Newest first. Throws `not_found`, and `invalid_request` for an invalid cursor. */
  async list(
    tenant: TenantId,
    name: string,
    page: { limit: number; cursor?: string | undefined },
  ): Promise<EvaluationPage> {
    const { uid } = await this.#deps.library.get(tenant, name)
    return this.#deps.store.page(tenant, uid, page)
  }
}
