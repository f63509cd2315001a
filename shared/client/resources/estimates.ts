import type { Schema } from '../api.ts'
import type { Raw } from '../http/raw.ts'
import type { CallOptions } from '../http/transport.ts'

/**
 * Estimates the first model call of starts, and their cost: `createEstimates(engine)`. Nothing is started, stored or reserved; a request that a start
 * would refuse throws `ApiError`. A separate function, so that pages without estimates do not load it.
 */
export function createEstimates({ raw }: { raw: Raw }) {
  const ask = (path: string, body: unknown, options?: CallOptions) =>
    raw.request<Schema<'Estimate'>>('POST', path, { ...options, query: { dry_run: true }, body })
  return {
    run: (body: Schema<'RunRequest'>, options?: CallOptions) => ask('/agent/run', body, options),
    flow: (name: string, body: Schema<'FlowRunRequest'>, options?: CallOptions) =>
      ask(`/flows/${encodeURIComponent(name)}/run`, body, options),
    plan: (plan: Schema<'PlanRequest'>, options?: CallOptions) => ask('/plans/submit', plan, options),
  }
}
