/** Numbers and times as people read them. All are pure: the clock is passed in. */

const UNITS: readonly (readonly [limit: number, unit: string, divisor: number])[] = [
  [60, 's', 1],
  [3_600, 'min', 60],
  [86_400, 'h', 3_600],
  [Number.POSITIVE_INFINITY, 'd', 86_400],
]

/** `12 s`, `3 min`, `5 h`, `2 d`: rounded down. */
function roughly(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [, unit, divisor] = UNITS.find(([limit]) => seconds < limit) ?? [0, 's', 1]
  return `${Math.floor(seconds / divisor)} ${unit}`
}

/** `just now`, `3 min ago`, `in 5 h`. */
export function relative(at: string, nowMs: number): string {
  const ms = nowMs - Date.parse(at)
  if (Math.abs(ms) < 5_000) return 'just now'
  return ms > 0 ? `${roughly(ms)} ago` : `in ${roughly(-ms)}`
}

/** `40 ms`, `0.2 s`, `12 s`, `2 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 99.5) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** `4:52`, as a countdown shows it. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** `950`, `12.4K`, `3.1M`. */
export function short(count: number): string {
  if (count < 1_000) return String(count)
  if (count < 999_500) return `${trim(count / 1_000)}K`
  return `${trim(count / 1_000_000)}M`
}

const trim = (value: number) => (value < 100 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value)))

/** `$0`, `$0.0004`, `$0.031`, `$12.40`. */
export function money(usd: number): string {
  if (usd === 0) return '$0'
  if (usd >= 1) return `$${usd.toFixed(2)}`
  return `$${usd.toFixed(usd >= 0.01 ? 3 : 4)}`
}

/** `87 %`: a share is never rounded to 0 % or 100 % unless it is exactly that. */
export function percent(share: number): string {
  const rounded = Math.round(share * 100)
  if (rounded === 100 && share < 1) return '99 %'
  return rounded === 0 && share > 0 ? '1 %' : `${rounded} %`
}

/** `23 B`, `4.1 KB`. */
export function bytes(count: number): string {
  if (count < 1_024) return `${count} B`
  return count < 1_048_576 ? `${trim(count / 1_024)} KB` : `${trim(count / 1_048_576)} MB`
}

/** `1 run`, `2 runs`. */
export const counted = (count: number, noun: string, many = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : many}`

const ABSOLUTE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** The time in the reader's own zone and language. */
export const absolute = (at: string): string => ABSOLUTE.format(new Date(at))

const DAY = { weekday: 'short', day: 'numeric', month: 'short' } as const
const TIME = { hour: '2-digit', minute: '2-digit' } as const
const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(undefined, options)
const [ON_DAY, AT_TIME, AT_SECOND] = [format(DAY), format(TIME), format({ ...TIME, second: '2-digit' })] as const

/** `Thu, Nov 26, 03:00` in the reader's own zone and language, without the day when it is that of `before`; with seconds where there are some. */
export function moment(at: string, before?: string): string {
  const date = new Date(at)
  const time = (date.getUTCSeconds() === 0 ? AT_TIME : AT_SECOND).format(date)
  const day = ON_DAY.format(date)
  return before !== undefined && ON_DAY.format(new Date(before)) === day ? time : `${day}, ${time}`
}

/** The name of the reader's zone, such as `Europe/Berlin`. */
export const zone = (): string => AT_TIME.resolvedOptions().timeZone

/** `run_0f8f…50e`: a short form that still distinguishes ids. */
export const shortId = (id: string): string => (id.length > 20 ? `${id.slice(0, 9)}…${id.slice(-4)}` : id)
