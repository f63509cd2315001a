/**
 * A moment by both clocks, in milliseconds. The monotonic clock stands still while the machine is suspended; the wall clock
 * continues, but may be set.
 */
export type Moment = { monotonic: number; wall: number }

export const now = (): Moment => ({ monotonic: performance.now(), wall: Date.now() })

/** Clocks of one machine that are not set or suspended differ by less than this after several seconds. */
const MAX_DIFFERENCE_MS = 500

/**
 * The milliseconds between two moments. `Infinity` when the clocks do not agree on them: then the machine was suspended, the process
 * was paused between reading the two clocks, or the wall clock was set, and how long it took is unknown.
 */
export function elapsedMs(from: Moment, to: Moment): number {
  const [byMonotonic, byWall] = [to.monotonic - from.monotonic, to.wall - from.wall]
  if (Math.abs(byMonotonic - byWall) > MAX_DIFFERENCE_MS) return Infinity
  return Math.max(byMonotonic, byWall)
}
