/** Figures as a person reads them. */

export function tokens(count: number): string {
  if (count < 1_000) return String(count)
  if (count < 999_500) return `${short(count / 1_000)}K`
  return `${short(count / 1_000_000)}M`
}

export function dollars(usd: number): string {
  if (usd === 0) return '$0'
  if (usd < 0.0005) return '<$0.001'
  return usd < 1 ? `$${usd.toFixed(3)}` : `$${usd.toFixed(2)}`
}

export function bytes(count: number): string {
  if (count < 1_000) return `${count} B`
  if (count < 999_500) return `${short(count / 1_000)} KB`
  return `${short(count / 1_000_000)} MB`
}

export function duration(ms: number): string {
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}

/** The time that is left, as `4:52`. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** The estimated rest of the time at the present speed, as `0:42 left`. Empty until it can be estimated. */
export function timeLeft({ done, total, elapsedMs }: { done: number; total: number; elapsedMs: number }): string {
  if (done <= 0 || done >= total || elapsedMs < 1_000) return ''
  return `${countdown((elapsedMs / done) * (total - done))} left`
}

/** How long ago something was, as `3 min`. */
export function age(since: string | null | undefined, now: number): string {
  if (!since) return ''
  const seconds = Math.max(0, Math.round((now - Date.parse(since)) / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

const short = (value: number): string => (value < 99.95 ? value.toFixed(1).replace(/\.0$/, '') : value.toFixed(0))
