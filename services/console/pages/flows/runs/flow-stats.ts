import type { Schema } from '../../../../../shared/client/api.ts'

type Day = Pick<
  Schema<'DispatchStats'>['buckets'][number],
  'start' | 'runs' | 'failed' | 'verdicts' | 'cost_usd' | 'p50_ms' | 'p95_ms' | 'is_partial'
>

export type FlowStats = {
  runs: number
  /** Runs that ended with an error, and runs whose output did not fit the schema. */
  failures: number
  costUsd: number
  /** The medians of the days' figures, each day as often as its runs. */
  p50Ms: number | undefined
  p95Ms: number | undefined
  /** The runs of each day, the newest last. */
  days: readonly number[]
  isPartial: boolean
}

const DAY_MS = 86_400_000
export const DAYS = 7

/** Adds up the last seven days (UTC) of a flow. */
export function addUp(days: readonly Day[], nowMs: number): FlowStats {
  const sum = (of: (day: Day) => number) => days.reduce((total, day) => total + of(day), 0)
  const dayOf = (ms: number) => Math.floor(ms / DAY_MS)
  const runs = new Map(days.map((day) => [dayOf(Date.parse(day.start)), day.runs]))
  return {
    runs: sum((day) => day.runs),
    failures: sum(({ failed, verdicts }) => failed + verdicts.invalid),
    costUsd: sum((day) => day.cost_usd),
    p50Ms: medianOf(days, ({ p50_ms }) => p50_ms),
    p95Ms: medianOf(days, ({ p95_ms }) => p95_ms),
    days: Array.from({ length: DAYS }, (_, i) => runs.get(dayOf(nowMs) - DAYS + 1 + i) ?? 0),
    isPartial: days.some((day) => day.is_partial),
  }
}

function medianOf(days: readonly Day[], of: (day: Day) => number | null): number | undefined {
  const timed = days.flatMap((day) => {
    const ms = of(day)
    return ms === null ? [] : [{ ms, runs: day.runs }]
  })
  const half = timed.reduce((sum, { runs }) => sum + runs, 0) / 2
  let passed = 0
  return timed.toSorted((one, other) => one.ms - other.ms).find(({ runs }) => (passed += runs) >= half)?.ms
}
