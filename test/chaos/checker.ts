import { checkDeaths } from './checks/deaths.ts'
import { checkEffects } from './checks/effects.ts'
import { checkExposure } from './checks/exposure.ts'
import { checkLedgers } from './checks/ledgers.ts'
import { checkPermissions } from './checks/permissions.ts'
import { checkProcesses } from './checks/processes.ts'
import { checkRuns } from './checks/runs.ts'
import { checkStreams } from './checks/streams.ts'
import type { Entry, Violation } from './history.ts'
import { LIMITS, type Limits } from './limits.ts'

const CHECKS = [
  checkStreams,
  checkDeaths,
  checkRuns,
  checkEffects,
  checkLedgers,
  checkPermissions,
  checkProcesses,
  checkExposure,
]

/**
 * Everything in a finished history that design.md §7 and reliability.md's N1 to N10 forbid. The entries may come from many
 * logs one behind the other: they are merged by their times, and where these are equal stay as they were. What nobody logged
 * is not judged.
 */
export function check(history: readonly Entry[], limits: Limits = LIMITS): Violation[] {
  const merged = history.toSorted((a, b) => a.t - b.t)
  return CHECKS.flatMap((find) => find(merged, limits))
}
