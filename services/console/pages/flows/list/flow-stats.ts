import type { Schema } from '../../../../../shared/client/api.ts'

export type Bucket = Pick<
  Schema<'DispatchStats'>['buckets'][number],
  'start' | 'runs' | 'failed' | 'verdicts' | 'cost_usd' | 'p50_ms' | 'is_partial'
>

export type FlowStats = {
  runs: number
  /** The share of the ended runs whose output fits the schema. */
  passRate: number | undefined
  /** The median of the hours' medians, each as often as its runs. */
  p50Ms: number | undefined
  costPerRun: number | undefined
  /** The runs of each hour, the newest last. */
  hours: readonly number[]
  isPartial: boolean
}

const HOUR_MS = 3_600_000
const HOURS = 24

/** Adds up the last 24 hours of a flow. */
export function addUp(buckets: readonly Bucket[], nowMs: number): FlowStats {
  const sum = (of: (bucket: Bucket) => number) => buckets.reduce((total, bucket) => total + of(bucket), 0)
  const runs = sum((bucket) => bucket.runs)
  const valid = sum(({ verdicts }) => verdicts.valid)
  const ended = valid + sum(({ verdicts, failed }) => verdicts.invalid + failed)
  return {
    runs,
    passRate: ended === 0 ? undefined : valid / ended,
    p50Ms: medianOf(buckets),
    costPerRun: runs === 0 ? undefined : sum((bucket) => bucket.cost_usd) / runs,
    hours: hoursOf(buckets, nowMs),
    isPartial: buckets.some((bucket) => bucket.is_partial),
  }
}

function medianOf(buckets: readonly Bucket[]): number | undefined {
  const timed = buckets.flatMap(({ p50_ms, runs }) => (p50_ms === null ? [] : [{ ms: p50_ms, runs }]))
  const half = timed.reduce((sum, { runs }) => sum + runs, 0) / 2
  let passed = 0
  return timed.toSorted((one, other) => one.ms - other.ms).find(({ runs }) => (passed += runs) >= half)?.ms
}

function hoursOf(buckets: readonly Bucket[], nowMs: number): number[] {
  const runs = new Map(buckets.map((bucket) => [Math.floor(Date.parse(bucket.start) / HOUR_MS), bucket.runs]))
  const last = Math.floor(nowMs / HOUR_MS)
  return Array.from({ length: HOURS }, (_, i) => runs.get(last - HOURS + 1 + i) ?? 0)
}
