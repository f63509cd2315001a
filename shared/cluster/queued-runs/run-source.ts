import type { TenantId } from '../../kernel/tenant.ts'

/**
 * The state of a queued run. `executor` is the epoch of the executor that runs it or has run it. A run that ended before an executor
 * began it has none, and `code` tells its readers why (`worker_lost` if left out).
 */
export type QueuedRunState =
  | { state: 'queued'; started_at: string }
  /** `mayMove`: another executor begins it anew when this one is dead (D34.2). */
  | { state: 'running'; executor: number; mayMove?: { started_at: string } }
  | { state: 'ended'; executor: number; code?: 'cancelled' }
  | { state: 'ended'; executor: null; code?: 'cancelled' | 'worker_lost' }

/** Where the runs are that were queued for an executor (`isQueuedRun`). Every method throws `unavailable` when the store is away. */
export interface QueuedRunSource {
  /**
   * The state of a run that this process queued a moment ago, without reading the store, for the first caller only. The run may have begun since:
   * only a caller that also gets its start notice may use it.
   */
  takeCreated?(tenant: TenantId, runId: string): QueuedRunState | undefined
  /** `undefined` for an unknown run and for another tenant's. */
  find(tenant: TenantId, runId: string): Promise<QueuedRunState | undefined>
  /**
   * Ends a run that waits for an executor: a queued one, or with `lost` one that may move, whose executor of this epoch is dead. Returns `false`
   * when it does not wait any more. Without it, such a run cannot be cancelled.
   */
  cancelWaiting?(tenant: TenantId, runId: string, lost?: number): Promise<boolean>
}
