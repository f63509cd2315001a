import { createHash } from 'node:crypto'
import { Cron } from 'croner'
import { invalidRequest } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Job, Timing } from './port.ts'

export type TimingInput = { every_secs?: number; cron?: string; timezone?: string }

type CronTiming = Extract<Timing, { cron: string }>

/** A year. */
const MAX_EVERY_SECS = 31_536_000
const MAX_CRON_CHARS = 100
const DEFAULT_TIMEZONE = 'UTC'
const FIELDS = /^\S+(?: +\S+){4,5}$/

/** How many ticks of a pattern are compared with each other. */
const COMPARED_TICKS = 100

/**
 * Checks when a schedule is to start its work, with at least `leastSecs` between two ticks. Throws `invalid_request` that names the wrong
 * field: a pattern that never applies is wrong, too. A cron pattern has five fields, or six with the second first. A time of day that a
 * change of clocks leaves out applies right after it, and one that it repeats applies once (croner).
 */
export function readTiming({ every_secs, cron, timezone }: TimingInput, leastSecs = 1): Timing {
  if (every_secs !== undefined) {
    if (cron !== undefined) throw wrong('/cron', 'give either every_secs or cron, not both')
    if (timezone !== undefined) throw wrong('/timezone', 'timezone goes with cron; leave it out beside every_secs')
    if (!Number.isInteger(every_secs) || every_secs < leastSecs || every_secs > MAX_EVERY_SECS)
      throw wrong('/every_secs', `every_secs is a whole number from ${leastSecs} to ${MAX_EVERY_SECS}`)
    return { every_secs }
  }
  if (cron === undefined) throw wrong('', 'give every_secs, or cron with a timezone')
  const timing = { cron: cron.trim(), timezone: timezone ?? DEFAULT_TIMEZONE }
  checkTimezone(timing.timezone)
  checkCron(timing)
  checkFrequency(timing, leastSecs)
  return timing
}

function checkTimezone(timezone: string): void {
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone })
  } catch {
    throw wrong('/timezone', 'timezone is no IANA time zone such as Europe/Berlin or UTC')
  }
}

function checkCron(timing: CronTiming): void {
  if (timing.cron.length > MAX_CRON_CHARS || !FIELDS.test(timing.cron))
    throw wrong(
      '/cron',
      'cron has five fields: minute, hour, day, month and weekday, for example 30 2 * * MON-FRI; or six, the second first',
    )
  let next: number | undefined
  try {
    next = nextTick(timing, Date.now())
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message.replace(/^Cron\w*: /, '') : ''
    throw wrong('/cron', `cron is no valid pattern: ${detail.slice(0, MAX_CRON_CHARS)}`)
  }
  if (next === undefined) throw wrong('/cron', 'cron never applies: no date matches it')
}

/** Two closer ticks that come much later are not found here, but one of them is left out in any case (`slowedTiming`). */
function checkFrequency(timing: CronTiming, leastSecs: number): void {
  if (!mayComeWithin(timing, leastSecs)) return
  const ticks = cronOf(timing).nextRuns(COMPARED_TICKS)
  const isClose = ticks.some((tick, i) => i > 0 && tick.getTime() - (ticks[i - 1]?.getTime() ?? 0) < 1_000 * leastSecs)
  if (isClose)
    throw wrong('/cron', `cron applies more often than every ${leastSecs} seconds: leave more time between two ticks`)
}

/** A pattern without a field for seconds applies at whole minutes. */
const mayComeWithin = ({ cron }: CronTiming, secs: number): boolean => secs > 60 || cron.split(/ +/).length > 5

/** The timing with at most one tick in `leastSecs` seconds. */
export function slowedTiming(timing: Timing, leastSecs: number): Timing {
  if ('every_secs' in timing) return { every_secs: Math.max(timing.every_secs, leastSecs) }
  return mayComeWithin(timing, leastSecs) ? { ...timing, least_secs: leastSecs } : timing
}

const wrong = (param: string, message: string) => invalidRequest(message, { param })

/** The first tick after a time, both in milliseconds since 1970. `undefined` when there is none. Throws for an invalid pattern. */
export function nextTick(timing: Timing, after: number): number | undefined {
  if ('every_secs' in timing) {
    const everyMs = 1_000 * timing.every_secs
    return (Math.floor(after / everyMs) + 1) * everyMs
  }
  const cron = cronOf(timing)
  const next = (from: number) => cron.nextRun(new Date(from))?.getTime()
  if (timing.least_secs === undefined) return next(after)
  const leastMs = 1_000 * timing.least_secs
  const since = Math.floor(after / leastMs) * leastMs
  const first = next(since - 1)
  return first === undefined || first > after ? first : next(since + leastMs - 1)
}

/** The first ticks after a time, at most `count`. */
export function nextTicks(timing: Timing, after: number, count: number): number[] {
  const ticks: number[] = []
  for (let tick = nextTick(timing, after); tick !== undefined && ticks.length < count; tick = nextTick(timing, tick))
    ticks.push(tick)
  return ticks
}

const cronOf = ({ cron, timezone }: CronTiming): Cron =>
  new Cron(cron, { timezone, mode: '5-or-6-parts', paused: true })

/** `at` is in milliseconds since 1970. */
export type Tick = { name: string; at: number }

/** The id of the job of a tick. */
export const tickId = (tenant: TenantId, { name, at }: Tick): string => `tick_${at}_${digest(tenant)}_${name}`

const TICK_ID = /^tick_(\d+)_[0-9a-f]{16}_(.+)$/

/** Reads the id of a job of kind `schedule`. Throws for another one. */
export function readTick({ id }: Pick<Job, 'id'>): Tick {
  const [, at, name] = TICK_ID.exec(id) ?? []
  if (at === undefined || name === undefined) throw new Error('this is not the job of a tick')
  return { name, at: Number(at) }
}

/** A schedule's name within the queue, for all tenants. It contains no colon. */
export const scheduleId = (tenant: TenantId, name: string): string => `${digest(tenant)}_${name}`

const digest = (tenant: TenantId): string => createHash('sha256').update(tenant).digest('hex').slice(0, 16)
