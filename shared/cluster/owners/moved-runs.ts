import type { TenantId } from '../../kernel/tenant.ts'

/**
 * Where runs are that began on another worker than the one whose epoch their id contains: they waited in the queue of a session that
 * was handed over.
 */
export interface MovedRuns {
  /** Records that these runs are at the worker of this epoch, for a day. */
  record(tenant: TenantId, runIds: readonly string[], epoch: number): Promise<void>
  /** Throws `unavailable` when Redis does not answer. */
  find(tenant: TenantId, runId: string): Promise<number | undefined>
}
