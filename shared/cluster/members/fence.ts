/**
 * States whether this process may still act for the sessions and runs it owns. A process that could not renew its lease may have
 * been replaced by another (`shared/cluster/README.md` "Membership and leases"). Callers check immediately before each tool start,
 * each message of frames and each write that must happen once.
 */
export interface Fence {
  /** Computed at each call from the time of the last renewal: a process that was suspended gets `false` as soon as it continues. */
  isHeld(): boolean
  /** When the lease ends unless it is renewed, by `performance.now()`; `-Infinity` when it is not held. */
  heldUntil(): number
  /** Resolves when the lease is held, or when `signal` is aborted. */
  whenHeld(signal: AbortSignal): Promise<void>
}

/** The fence of the standalone form, where no other process can take over. */
export const ALWAYS_HELD: Fence = { isHeld: () => true, heldUntil: () => Infinity, whenHeld: async () => {} }
