import { type Bucket, LENGTH_MS } from './spans.ts'
import { addUp, keyOf, MEASURES, type Measure, type Row } from './sums.ts'

/**
 * `time`: the start of the bar, in milliseconds. `parts`: the value of each key with a colour, then that of all other
 * keys; a measure that cannot be divided has one part.
 */
export type Bar = { time: number; total: number | undefined; parts: readonly number[] }

type Shown = {
  /** The rows of all runs, however they are divided. */
  totals: readonly Row[]
  keys: readonly string[]
  measure: Measure
  bucket: Bucket
  span: { from: number; to: number }
}

/** A bar for each bucket of the span, also for one in which nothing was used. Rounding errors of sums of dollars do not become a part. */
export function barsOf(rows: readonly Row[], { totals, keys, measure, bucket, span }: Shown): readonly Bar[] {
  const length = LENGTH_MS[bucket]
  const { of, isSum } = MEASURES[measure]
  const at = (row: Row) => Math.floor(Date.parse(row.bucket) / length)
  const [all, divided] = [Map.groupBy(totals, at), Map.groupBy(rows, at)] as const
  const first = Math.floor(span.from / length)
  return Array.from({ length: Math.floor(span.to / length) - first + 1 }, (_, i) => {
    const total = of(addUp(all.get(first + i) ?? []))
    const own = Map.groupBy(divided.get(first + i) ?? [], keyOf)
    const known = isSum ? keys.map((key) => of(addUp(own.get(key) ?? [])) ?? 0) : []
    const rest = (total ?? 0) - known.reduce((sum, each) => sum + each, 0)
    return { time: (first + i) * length, total, parts: [...known, rest > (total ?? 0) * 1e-9 ? rest : 0] }
  })
}

/** Days are UTC days, because usage is counted so; hours are shown in the reader's time zone. */
const NAMES = {
  day: new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' }),
  hour: new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' }),
} as const

export const nameOf = (time: number, bucket: Bucket): string => NAMES[bucket].format(time)

/** Round values from 0 up to `top`, at most six: steps of 1, 2 or 5 times a power of ten. Counts have whole numbers only. */
export function stepsOf(top: number, isCounted: boolean): readonly number[] {
  const least = Math.max(top / 5, isCounted ? 1 : 0)
  const power = 10 ** Math.floor(Math.log10(least))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10)
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step)
}
