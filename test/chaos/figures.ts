import { quantile } from '../../scripts/bench/statistics.ts'
import type { Guarantee } from '../harness/guarantee.ts'
import type { Violation } from './history.ts'

/** The longest of the times, beside its distribution. Nothing measured is a broken promise. */
export function slowest(title: string, times: readonly number[], atMost: number): Guarantee {
  return {
    title,
    value: times.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...times),
    unit: ' ms',
    goal: { atMost },
    ...whatLiesBehind(times),
  }
}

/** A quantile of the times, beside their distribution. Nothing measured is a broken promise. */
export function quantileOf(title: string, times: readonly number[], { part, atMost }: Goal): Guarantee {
  const value = times.length === 0 ? Number.POSITIVE_INFINITY : quantile(times, part)
  return { title, value, unit: ' ms', goal: { atMost }, ...whatLiesBehind(times) }
}

type Goal = { part: number; atMost: number }

/** What a promise forbids. */
export function none(title: string, value: number, detail = ''): Guarantee {
  return { title, value, unit: '', goal: { atMost: 0 }, detail }
}

/** As many as there were to be. */
export function allOf(title: string, value: number, wanted: number): Guarantee {
  return { title, value, unit: '', goal: { atLeast: Math.max(1, wanted) }, detail: `of ${wanted}` }
}

/** What the offline checker found, by rule. */
export function violations(found: readonly Violation[]): Guarantee {
  const byRule = Map.groupBy(found, ({ rule }) => rule)
  const counts = [...byRule].map(([rule, all]) => `${rule} x ${all.length}: ${all[0]?.what}`)
  return none('violations in the history', found.length, counts.join('; ').slice(0, 500))
}

function whatLiesBehind(times: readonly number[]): { detail: string } {
  if (times.length === 0) return { detail: 'nothing was measured' }
  const shown = (part: number) => quantile(times, part).toFixed(0)
  return { detail: `p50 ${shown(0.5)}, p90 ${shown(0.9)}, p99 ${shown(0.99)}, max ${shown(1)} of ${times.length}` }
}
