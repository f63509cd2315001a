import type { TenantId } from '../../tenant.ts'

/** Records which worker owns a session, by the worker's epoch. Every change is one compare-and-set: of many creators one wins. */
export interface Owners {
  /** Returns the session's owner: the given epoch, or an earlier claimant's. A claim lasts a day; repeating it extends it. */
  claim(tenant: TenantId, sessionId: string, epoch: number): Promise<number>
  find(tenant: TenantId, sessionId: string): Promise<number | undefined>
  /** Gives the session to another worker if `from` owns it. Returns whether it did. */
  transfer(tenant: TenantId, sessionId: string, owners: { from: number; to: number }): Promise<boolean>
  /** Deletes the claim if this epoch holds it; another owner's claim stays. */
  release(tenant: TenantId, sessionId: string, epoch: number): Promise<void>
}
