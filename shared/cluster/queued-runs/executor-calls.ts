import type { TenantId } from '../../kernel/tenant.ts'
import type { RunSummary } from '../commands/runs.ts'
import type { FrameStream } from '../journal/frame-stream.ts'

/** A run at the executor of this epoch. */
export type RunPlace = { epoch: number; tenant: TenantId; runId: string }

/** Calls executors. Throws `not_found` for a run that the executor does not know, and `unavailable` when it does not answer. */
export interface ExecutorCalls {
  isAlive(epoch: number): Promise<boolean>
  followRun(place: RunPlace, after: number): Promise<FrameStream>
  getRun(place: RunPlace): Promise<RunSummary>
  cancelRun(place: RunPlace): Promise<void>
}
