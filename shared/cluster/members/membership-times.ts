export type MembershipTimes = {
  tickMs: number
  /** A little less than two ticks, so that every second tick renews; after a failed renewal the next tick tries again. */
  renewMs: number
  /** How long the members need, after Redis has lost its keys, until all have written theirs again. */
  rebuildMs: number
  /** A process evicts others only after its own answers from Redis have come for this long without a pause. */
  steadyMs: number
  /** A tick that comes later than this means that the process was suspended. */
  maxTickDelayMs: number
}

export const TIMES: MembershipTimes = {
  tickMs: 500,
  renewMs: 900,
  rebuildMs: 1_500,
  steadyMs: 4_000,
  maxTickDelayMs: 500,
}

/** About how many members look for lapsed leases at each tick: all in a small cluster, and a random part in a large one. */
const LOOKS_PER_TICK = 25
/** A gateway looks at least at every fourth tick, because it places runs by the loads that it reads. */
const MIN_GATEWAY_CHANCE = 0.25

/** Draws whether this process looks at this tick. */
export function isLookDue(members: number, isGateway: boolean): boolean {
  return Math.random() < Math.max(LOOKS_PER_TICK / members, isGateway ? MIN_GATEWAY_CHANCE : 0)
}
