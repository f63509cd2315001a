const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Where the first bucket of a span begins, of which the last one goes on: seven days are today and the six before it, in UTC. */
export function startOf({ days, bucket }: { days: number; bucket: 'hour' | 'day' }, now: number): string {
  const [lengthMs, count] = bucket === 'day' ? [DAY_MS, days] : [HOUR_MS, days * 24]
  return new Date((Math.floor(now / lengthMs) - count + 1) * lengthMs).toISOString()
}
