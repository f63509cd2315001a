import { withMissed } from '../../../scripts/bench/health-prober.ts'
import type { Stall } from '../../harness/loop-probe.ts'

const EVERY_MS = 10

/**
 * The delays of a timer that fires every 10 ms, from the stalls of 50 ms and longer that were reported during `forMs`: shorter delays
 * count as 0. As with `withMissed`, a stall delays all timers that are due meanwhile.
 */
export function loopDelays(stalls: readonly Stall[], forMs: number): number[] {
  const late = stalls.flatMap(({ ms }) => withMissed(ms, EVERY_MS))
  const others = Math.max(0, Math.round(forMs / EVERY_MS) - late.length)
  return [...late, ...Array.from({ length: others }, () => 0)]
}
