export type Bucket = 'hour' | 'day'

export const LENGTH_MS = { hour: 3_600_000, day: 86_400_000 } as const

/** How much time is shown: whole days (UTC) with today as the last, or whole hours with this one as the last. */
export type Span = { days: number; bucket: Bucket; label: string; before: string }

export const SPANS = {
  '1d': { days: 1, bucket: 'hour', label: 'Last 24 hours', before: 'the 24 hours before' },
  '7d': { days: 7, bucket: 'day', label: 'Last 7 days', before: 'the 7 days before' },
  '30d': { days: 30, bucket: 'day', label: 'Last 30 days', before: 'the 30 days before' },
} as const satisfies Readonly<Record<string, Span>>

/** A week, unless the address has another one. */
export const spanOf = (name: string): keyof typeof SPANS =>
  Object.hasOwn(SPANS, name) ? (name as keyof typeof SPANS) : '7d'

/** Where the first bucket of the span begins, and that of the equal span before it. */
export function startsOf({ days, bucket }: Pick<Span, 'days' | 'bucket'>, now: number) {
  const length = LENGTH_MS[bucket]
  const count = (days * LENGTH_MS.day) / length
  const from = (Math.floor(now / length) - count + 1) * length
  return { from, before: from - count * length }
}

/** The month (UTC) around a time: where it begins, its days, and how many of them are over. */
export function monthOf(now: number) {
  const date = new Date(now)
  const startOf = (month: number) => Date.UTC(date.getUTCFullYear(), month)
  const from = startOf(date.getUTCMonth())
  const days = (startOf(date.getUTCMonth() + 1) - from) / LENGTH_MS.day
  return { from, days, daysOver: (now - from) / LENGTH_MS.day }
}

/** What it will be at the end of the month when it goes on as by now. In the first day there is none: a few hours say nothing. */
export function forecastOf(used: number, now: number): number | undefined {
  const { days, daysOver } = monthOf(now)
  return daysOver < 1 ? undefined : (used / daysOver) * days
}

/** `▲ 12 %`: how much more or less it is than before; of a share in points. `undefined` when there was nothing before. */
export function changeOf(value: number | undefined, before: number | undefined, isShare = false): string | undefined {
  if (value === undefined || !before) return undefined
  const points = Math.round((isShare ? value - before : value / before - 1) * 100)
  return `${points > 0 ? '▲' : points < 0 ? '▼' : '±'} ${Math.abs(points)} ${isShare ? 'points' : '%'}`
}
