import { durationClass } from './durations.ts'
import type { RunUsage, UsageRows, UsageSums } from './port.ts'

/** The name, for clients and in the store, of all values beyond the first ones of an hour or day. */
export const OTHER = 'other'
/** The key of these values in memory, because a real value may also be called `other`. */
export const REST = `${OTHER}\u0001`

/** When the day of a time begins; both are in ISO 8601, in UTC. */
export const dayOf = (time: string): string => `${time.slice(0, 10)}T00:00:00.000Z`

/** The sums of a single run. */
export const sumsOf = ({ hasFailed, isInvalid, ms, ...used }: RunUsage): UsageSums => ({
  runs: 1,
  failed: hasFailed ? 1 : 0,
  invalid: isInvalid ? 1 : 0,
  input_tokens: used.input_tokens,
  cache_read_tokens: used.cache_read_tokens,
  cache_write_tokens: used.cache_write_tokens,
  output_tokens: used.output_tokens,
  cost_usd: used.cost_usd,
  durations: new Map([[durationClass(ms), 1]]),
})

export type OwnSums = Omit<UsageSums, 'durations'> & { durations: Map<number, number> }
/** Rows that only one part of the code changes. */
export type OwnRows = Map<string, OwnSums>

/** Adds to rows, and returns them all. A new key counts as `REST` when there are already `maxKeys` others. */
export function addRows(rows: UsageRows, added: UsageRows, maxKeys: number): UsageRows {
  const all = new Map([...rows].map(([key, sums]) => [key, copyOf(sums)]))
  addInto(all, added, maxKeys)
  return all
}

/** The same in place, for rows that are not shared. Its time does not depend on how many rows there are. */
export function addInto(all: OwnRows, added: UsageRows, maxKeys: number): void {
  for (const row of added) addRow(all, row, maxKeys)
}

/** The same with a single row. */
export function addRow(all: OwnRows, [value, sums]: readonly [string, UsageSums], maxKeys: number): void {
  const key = all.has(value) || all.size < maxKeys ? value : REST
  const known = all.get(key)
  if (known) addSums(known, sums)
  else all.set(key, copyOf(sums))
}

export const copyOf = (sums: UsageSums): OwnSums => ({ ...sums, durations: new Map(sums.durations) })

function addSums(sums: OwnSums, other: UsageSums): void {
  for (const field of SUMMED) sums[field] = capped(sums[field] + other[field])
  for (const [index, count] of other.durations)
    sums.durations.set(index, capped((sums.durations.get(index) ?? 0) + count))
}

export const SUMMED = [
  ...(['runs', 'failed', 'invalid', 'input_tokens', 'cache_read_tokens'] as const),
  ...(['cache_write_tokens', 'output_tokens', 'cost_usd'] as const),
]

/** Caps a sum to a number that JSON and every store can keep. */
const capped = (sum: number) => Math.min(sum, Number.MAX_SAFE_INTEGER)
