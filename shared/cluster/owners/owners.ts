import type { TenantId } from '../../kernel/tenant.ts'

/** Names a session; several sessions can have had the same name, one after the other. */
export type SessionKey = { readonly tenant: TenantId; readonly id: string }

/**
 * The owner of a session: a worker's epoch, and a token. No other creation of the same id has the same token, and an owner that takes
 * back what it has offered to another worker gets a new one.
 */
export type Claim = { readonly epoch: number; readonly token: string }

export const isSameClaim = (a: Claim | undefined, b: Claim): boolean => a?.epoch === b.epoch && a.token === b.token

/** How long a gateway's claim lasts while its worker has not confirmed that the session exists. */
export const RESERVED_SECS = 30
/** How long a worker's claim lasts. Workers repeat theirs every hour. */
export const HELD_SECS = 86_400

/**
 * Records which worker owns a session. Every change is one compare-and-set of the whole claim, and may be repeated: the connection
 * to Redis sends a command again when it was lost before its answer came.
 */
export interface Owners {
  /** Makes this claim if the session has none. Returns the claim that holds; if it is this one, it lasts for `secs` from now. */
  claim(session: SessionKey, claim: Claim, secs: number): Promise<Claim>
  find(session: SessionKey): Promise<Claim | undefined>
  /** Replaces `from` by `to`. Returns whether `to` holds now. */
  replace(session: SessionKey, claims: { from: Claim; to: Claim }, secs: number): Promise<boolean>
  /** Makes this claim if the session has none, and in place of any claim of the epoch `from`. Returns whether it holds now. */
  takeOver(session: SessionKey, change: { from: number; to: Claim }, secs: number): Promise<boolean>
  /** Deletes this claim; any other stays. Returns `false` when there is another. */
  release(session: SessionKey, claim: Claim): Promise<boolean>
}

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
