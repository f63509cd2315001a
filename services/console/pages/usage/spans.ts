export type Bucket = 'hour' | 'day'

export const LENGTH_MS = { hour: 3_600_000, day: 86_400_000 } as const

/** How much time is shown: whole days (UTC) up to today, or whole hours up to the present hour. */
export type Span = { days: number; bucket: Bucket; label: string; before: string }

export const SPANS = {
  '1d': { days: 1, bucket: 'hour', label: 'Last 24 hours', before: 'the 24 hours before' },
  '7d': { days: 7, bucket: 'day', label: 'Last 7 days', before: 'the 7 days before' },
  '30d': { days: 30, bucket: 'day', label: 'Last 30 days', before: 'the 30 days before' },
} as const satisfies Readonly<Record<string, Span>>

/** A week, unless the address has another one. */
export const spanOf = (name: string): keyof typeof SPANS =>
  Object.hasOwn(SPANS, name) ? (name as keyof typeof SPANS) : '7d'

/** The start of the first bucket of the span, and the start of the preceding span of the same length. */
export function startsOf({ days, bucket }: Pick<Span, 'days' | 'bucket'>, now: number) {
  const length = LENGTH_MS[bucket]
  const count = (days * LENGTH_MS.day) / length
  const from = (Math.floor(now / length) - count + 1) * length
  return { from, before: from - count * length }
}

/** The month (UTC) that contains a time: its start, the number of its days, and how many of them have passed. */
export function monthOf(now: number) {
  const date = new Date(now)
  const startOf = (month: number) => Date.UTC(date.getUTCFullYear(), month)
  const from = startOf(date.getUTCMonth())
  const days = (startOf(date.getUTCMonth() + 1) - from) / LENGTH_MS.day
  return { from, days, daysOver: (now - from) / LENGTH_MS.day }
}

/** The expected value at the end of the month at the present rate. There is none on the first day, because a few hours are not enough. */
export function forecastOf(used: number, now: number): number | undefined {
  const { days, daysOver } = monthOf(now)
  return daysOver < 1 ? undefined : (used / daysOver) * days
}

/** `▲ 12 %`: the change against the value before; for a share in percentage points. `undefined` when there was no value before. */
export function changeOf(value: number | undefined, before: number | undefined, isShare = false): string | undefined {
  if (value === undefined || !before) return undefined
  const points = Math.round((isShare ? value - before : value / before - 1) * 100)
  return `${points > 0 ? '▲' : points < 0 ? '▼' : '±'} ${Math.abs(points)} ${isShare ? 'points' : '%'}`
}
