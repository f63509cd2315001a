import { createHash } from 'node:crypto'
import { Cron } from 'croner'
import { invalidRequest } from '../errors.ts'
import type { TenantId } from '../tenant.ts'
import type { Job, Timing } from './port.ts'

export type TimingInput = { every_secs?: number; cron?: string; timezone?: string }

/** A year. */
const MAX_EVERY_SECS = 31_536_000
const MAX_CRON_CHARS = 100
const DEFAULT_TIMEZONE = 'UTC'
const FIELDS = /^\S+(?: +\S+){4,5}$/

/**
 * Checks when a schedule is to start its work. Throws `invalid_request` that names the wrong field: a pattern that never applies is
 * wrong, too. A cron pattern has five fields, or six with the second first. A time of day that a change of clocks leaves out applies
 * right after it, and one that it repeats applies once (croner).
 */
export function readTiming({ every_secs, cron, timezone }: TimingInput): Timing {
  if (every_secs !== undefined) {
    if (cron !== undefined) throw wrong('/cron', 'give either every_secs or cron, not both')
    if (timezone !== undefined) throw wrong('/timezone', 'timezone goes with cron; leave it out beside every_secs')
    if (!Number.isInteger(every_secs) || every_secs < 1 || every_secs > MAX_EVERY_SECS)
      throw wrong('/every_secs', `every_secs is a whole number from 1 to ${MAX_EVERY_SECS}`)
    return { every_secs }
  }
  if (cron === undefined) throw wrong('', 'give every_secs, or cron with a timezone')
  const timing = { cron: cron.trim(), timezone: timezone ?? DEFAULT_TIMEZONE }
  checkTimezone(timing.timezone)
  checkCron(timing)
  return timing
}

function checkTimezone(timezone: string): void {
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone })
  } catch {
    throw wrong('/timezone', 'timezone is no IANA time zone such as Europe/Berlin or UTC')
  }
}

function checkCron(timing: { cron: string; timezone: string }): void {
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

const wrong = (param: string, message: string) => invalidRequest(message, { param })

/** The first tick after a time, both in milliseconds since 1970. `undefined` when there is none. Throws for an invalid pattern. */
export function nextTick(timing: Timing, after: number): number | undefined {
  if ('every_secs' in timing) {
    const everyMs = 1_000 * timing.every_secs
    return (Math.floor(after / everyMs) + 1) * everyMs
  }
  const cron = new Cron(timing.cron, { timezone: timing.timezone, mode: '5-or-6-parts', paused: true })
  return cron.nextRun(new Date(after))?.getTime()
}

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

/** A schedule's name within the queue, for all tenants. It has no colon. */
export const scheduleId = (tenant: TenantId, name: string): string => `${digest(tenant)}_${name}`

const digest = (tenant: TenantId): string => createHash('sha256').update(tenant).digest('hex').slice(0, 16)
