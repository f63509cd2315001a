import type { TenantId } from '../../tenant.ts'

/** Which worker owns a session, by the worker's epoch: a claim is one compare-and-set, so one of many creators wins (design §4.7). */
export interface Owners {
  /** Returns the epoch that the session belongs to now: the one given, or one that had claimed it before. Holds for a day. */
  claim(tenant: TenantId, sessionId: string, epoch: number): Promise<number>
  find(tenant: TenantId, sessionId: string): Promise<number | undefined>
  /** Hands the session to another worker, if it is `from`'s. Returns whether it did. */
  transfer(tenant: TenantId, sessionId: string, owners: { from: number; to: number }): Promise<boolean>
  /** Gives the session up, if it is this worker's. */
  release(tenant: TenantId, sessionId: string, epoch: number): Promise<void>
}
