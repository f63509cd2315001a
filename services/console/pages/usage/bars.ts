import { MEASURES, type Measure, type Row } from './sums.ts'

export type Bucket = 'hour' | 'day'

/** `time`: where it begins, in milliseconds. `parts`: of each key with a colour, then of the others. */
export type Bar = { time: number; total: number; parts: readonly number[] }

type Shown = { keys: readonly string[]; measure: Measure; bucket: Bucket; span: { from: number; to: number } }

const LENGTH_MS = { hour: 3_600_000, day: 86_400_000 } as const

/** A bar for each bucket of the span, also for one in which nothing was used. */
export function barsOf(rows: readonly Row[], { keys, measure, bucket, span }: Shown): readonly Bar[] {
  const length = LENGTH_MS[bucket]
  const [first, last] = [Math.floor(span.from / length), Math.floor(span.to / length)]
  const bars = Array.from({ length: last - first + 1 }, (_, i) => ({
    time: (first + i) * length,
    total: 0,
    parts: Array.from({ length: keys.length + 1 }, () => 0),
  }))
  for (const row of rows) {
    const bar = bars[Math.floor(Date.parse(row.bucket) / length) - first]
    if (!bar) continue
    const known = keys.indexOf(row.key ?? '(none)')
    const at = known < 0 ? keys.length : known
    const value = MEASURES[measure].of(row)
    bar.total += value
    bar.parts[at] = (bar.parts[at] ?? 0) + value
  }
  return bars
}

/** Days are those of UTC, as they are counted; hours are shown in the reader's own zone. */
const NAMES = {
  day: new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' }),
  hour: new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' }),
} as const

export const nameOf = (time: number, bucket: Bucket): string => NAMES[bucket].format(time)

/** Round values from 0 up to `top`, at most six: steps of 1, 2 or 5 times a power of ten. What is counted has whole ones. */
export function stepsOf(top: number, isCounted: boolean): readonly number[] {
  const least = Math.max(top / 5, isCounted ? 1 : 0)
  const power = 10 ** Math.floor(Math.log10(least))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10)
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step)
}
