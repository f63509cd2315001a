import { type Guarantee, none } from '../harness/guarantee.ts'
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
const MAX_DETAIL_CHARS = 500

/**
 * Finds the violations of all rules in a finished history. The entries may be the concatenation of several logs: they are
 * merged by time, and entries of the same time keep their order. A check sees only what was recorded.
 */
export function check(history: readonly Entry[], limits: Limits = LIMITS): Violation[] {
  const merged = history.toSorted((a, b) => a.t - b.t)
  return CHECKS.flatMap((find) => find(merged, limits))
}

/** The guarantee that the checker found nothing. The detail shows the first violation of each rule. */
export function noViolations(found: readonly Violation[]): Guarantee {
  const byRule = Map.groupBy(found, ({ rule }) => rule)
  const counts = [...byRule].map(([rule, all]) => `${rule} x ${all.length}: ${all[0]?.what}`)
  return none('violations in the history', found.length, counts.join('; ').slice(0, MAX_DETAIL_CHARS))
}
