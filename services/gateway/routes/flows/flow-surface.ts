import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { Estimate } from '../../../../shared/tenancy/limits/estimate.ts'
import type { UsageReport } from '../../../../shared/tenancy/usage/report.ts'
import type { BatchCalls } from '../../../../shared/work/flows/batch/calls.ts'
import type { FlowCall, FlowCalls } from '../../../../shared/work/flows/calls/calls.ts'
import type { FlowChecks } from '../../../../shared/work/flows/check/check.ts'
import type { FlowEvaluator } from '../../../../shared/work/flows/evaluate/evaluate.ts'
import type { EvaluationHistory } from '../../../../shared/work/flows/evaluate/history.ts'
import type { FlowMemory } from '../../../../shared/work/flows/flow-memory.ts'
import type { FlowLibrary } from '../../../../shared/work/flows/library.ts'

type LibraryCall =
  | 'list'
  | 'get'
  | 'published'
  | 'definitionOf'
  | 'put'
  | 'publish'
  | 'rollback'
  | 'remove'
  | 'revisions'
  | 'catalogue'

/** The services behind the flow endpoints. They exist in a process with a store. */
export type FlowSurface = {
  library: Pick<FlowLibrary, LibraryCall>
  memory: Pick<FlowMemory, 'list' | 'add' | 'remove'>
  checks: Pick<FlowChecks, 'check'>
  evaluations: Pick<EvaluationHistory, 'list'>
  /** The figures of a flow's recent runs, by the flow's name. */
  figures: UsageReport['flows']
  /** `undefined` without a master key: flows can be edited, but no provider can be called. */
  execution: FlowRunSurface | undefined
}

/** The services behind the endpoints that run flows. */
export type FlowRunSurface = {
  calls: Pick<FlowCalls, 'start'>
  evaluator: Pick<FlowEvaluator, 'evaluate'>
  batches: Pick<BatchCalls, 'start' | 'get' | 'list' | 'cancel' | 'results'>
  /** Estimates a run without starting it (D57). */
  estimate(tenant: TenantId, call: FlowCall & { name: string }): Promise<Estimate>
}
