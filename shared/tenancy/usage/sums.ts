import { truncate } from '../../kernel/text.ts'
import { durationClass } from './durations.ts'
import type { Bucket, RunUsage, UsageRows, UsageSums } from './port.ts'

/** The key of the values that were not among the first ones of their hour or day. */
const OTHER = 'other'
/** Longer values are cut, which some names of models may be. */
const MAX_KEY_CHARS = 256

/** When the hour or day of a time begins; both are in ISO 8601, in UTC. */
export function startOf(time: string, bucket: Bucket): string {
  return bucket === 'day' ? `${time.slice(0, 10)}T00:00:00.000Z` : `${time.slice(0, 13)}:00:00.000Z`
}

/** The sums of a single run. */
export const sumsOf = ({ hasFailed, input_tokens, output_tokens, cost_usd, ms }: RunUsage): UsageSums => ({
  runs: 1,
  failed: hasFailed ? 1 : 0,
  input_tokens,
  output_tokens,
  cost_usd,
  durations: new Map([[durationClass(ms), 1]]),
})

/** Adds to rows, and returns them all. A key that is new counts as `OTHER` where there are `maxKeys` others already. */
export function addRows(rows: UsageRows, added: UsageRows, maxKeys: number): UsageRows {
  const all = new Map(rows)
  for (const [value, sums] of added) {
    const name = truncate(value, MAX_KEY_CHARS)
    const key = all.has(name) || all.size < maxKeys ? name : OTHER
    all.set(key, addSums(all.get(key), sums))
  }
  return all
}

function addSums(one: UsageSums | undefined, other: UsageSums): UsageSums {
  if (!one) return other
  return {
    runs: capped(one.runs + other.runs),
    failed: capped(one.failed + other.failed),
    input_tokens: capped(one.input_tokens + other.input_tokens),
    output_tokens: capped(one.output_tokens + other.output_tokens),
    cost_usd: capped(one.cost_usd + other.cost_usd),
    durations: addDurations(one.durations, other.durations),
  }
}

function addDurations(one: UsageSums['durations'], other: UsageSums['durations']): UsageSums['durations'] {
  const all = new Map(one)
  for (const [index, count] of other) all.set(index, capped((all.get(index) ?? 0) + count))
  return all
}

/** A sum stays a number that JSON and every store keep. */
const capped = (sum: number) => Math.min(sum, Number.MAX_SAFE_INTEGER)
