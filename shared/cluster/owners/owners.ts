import type { TenantId } from '../../kernel/tenant.ts'

/** The name of a session; several sessions may have had it, one after the other. */
export type SessionKey = { readonly tenant: TenantId; readonly id: string }

/**
 * The owner of a session: a worker's epoch, and a token. Another session with the same id has another token, and an owner that
 * withdraws an offer to another worker gets a new token.
 */
export type Claim = { readonly epoch: number; readonly token: string }

export const isSameClaim = (a: Claim | undefined, b: Claim): boolean => a?.epoch === b.epoch && a.token === b.token

/** How long a gateway's claim lasts while its worker has not confirmed that the session exists. */
export const RESERVED_SECS = 30
/** How long a worker's claim lasts. Workers repeat theirs every hour. */
export const HELD_SECS = 86_400

/**
 * Records which worker owns a session. Every change is one compare-and-set of the whole claim, and may be repeated: the connection
 * to Redis repeats a command when it broke before the answer.
 */
export interface Owners {
  /** Makes this claim if the session has none. Returns the valid claim; if it is this one, it lasts for `secs` from now. */
  claim(session: SessionKey, claim: Claim, secs: number): Promise<Claim>
  find(session: SessionKey): Promise<Claim | undefined>
  /** Replaces `from` by `to`. Returns whether `to` is valid now. */
  replace(session: SessionKey, claims: { from: Claim; to: Claim }, secs: number): Promise<boolean>
  /** Makes this claim if the session has none, or replaces any claim of the epoch `from`. Returns whether it is valid now. */
  takeOver(session: SessionKey, change: { from: number; to: Claim }, secs: number): Promise<boolean>
  /** Deletes this claim; any other stays. Returns `false` when there is another. */
  release(session: SessionKey, claim: Claim): Promise<boolean>
}

/**
 * The places of runs that began on another worker than the one whose epoch is in their id, because their session was handed over
 * while they waited.
 */
export interface MovedRuns {
  /** Records that these runs are at the worker of this epoch, for a day. */
  record(tenant: TenantId, runIds: readonly string[], epoch: number): Promise<void>
  /** Throws `unavailable` when Redis does not answer. */
  find(tenant: TenantId, runId: string): Promise<number | undefined>
}
