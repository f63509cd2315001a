import type { RunFilter, RunSearch, RunSummary } from '../../../cluster/commands/runs.ts'

const EQUAL = ['status', 'kind', 'code', 'session_id', 'customer_id', 'subject', 'model'] as const

export function isFound(run: RunSummary, search: Pick<RunFilter, 'status'> & RunSearch): boolean {
  const { since, until, min_cost, metadata = {} } = search
  if (EQUAL.some((field) => search[field] !== undefined && search[field] !== run[field])) return false
  if (Object.entries(metadata).some(([key, value]) => run.metadata?.[key] !== value)) return false
  if (since !== undefined && run.started_at < since) return false
  if (until !== undefined && run.started_at >= until) return false
  return min_cost === undefined || (run.cost_usd ?? 0) >= min_cost
}
