import type { Request } from 'express'
import { PRIORITIES, type Priority } from '../../shared/agent/providers/port.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import type { PageRequest } from '../../shared/kernel/cursor.ts'
import { invalidRequest, notFound } from '../../shared/kernel/errors.ts'

export type IdForm = { noun: string; pattern: RegExp }

/** The forms of ids in paths (D2.8, D2.11). `openapi.yaml` contains the same patterns. */
export const SESSION: IdForm = { noun: 'session', pattern: /^[A-Za-z0-9._:-]{1,128}$/ }
/**
 * The names that a client may give a session, as `NewSessionId` of `openapi.yaml` has it: URLs leave `.` and `..` out,
 * and runs have their own ids.
 */
export const NEW_SESSION: ValueForm = {
  pattern: /^(?!\.{1,2}$)(?!run_[0-9a-f]{32}$)[A-Za-z0-9._:-]{1,128}$/,
  wanted: '1 to 128 of the characters A-Z a-z 0-9 . _ : -, other than . and .. and run_ with 32 hex digits',
}
/** One to 128 characters, none of them a control character. */
export const CUSTOMER: IdForm = { noun: 'customer', pattern: /^[^\p{Cc}\p{Cs}]{1,128}$/u }
export const RUN: IdForm = { noun: 'run', pattern: /^run_[0-9a-f]{32}$/ }
export const STEER: IdForm = { noun: 'steer', pattern: /^steer_[0-9a-f]{32}$/ }
export const PERMISSION: IdForm = { noun: 'permission request', pattern: /^perm_[0-9a-f]{32}$/ }
/** A provider chooses the form of a call's id; the ids by which a client answers calls have this form. */
export const TOOL_CALL: IdForm = { noun: 'tool call', pattern: /^[A-Za-z0-9._:-]{1,128}$/ }
/** A flow's name is its id (D6.1). */
export const FLOW: IdForm = { noun: 'flow', pattern: /^[a-z0-9][a-z0-9_-]{0,63}$/ }
export const FLOW_VERSION: IdForm = { noun: 'version of this flow', pattern: /^[1-9]\d{0,9}$/ }
export const TRACE: IdForm = { noun: 'execution', pattern: /^trace_[0-9a-f]{32}$/ }
export const BATCH: IdForm = { noun: 'batch', pattern: /^batch_[0-9a-f]{32}$/ }
export const PLAN: IdForm = { noun: 'plan', pattern: /^plan_[0-9a-f]{32}$/ }
/** Names of instances and secrets (D2.11). */
export const CONFIG_NAME = { pattern: /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/ }
export const DELIVERY: IdForm = { noun: 'delivery', pattern: /^msg_[0-9a-f]{32}$/ }
/** Schedules of plans have names of the same form (D2.11). */
export const SCHEDULE: IdForm = { noun: 'schedule', ...CONFIG_NAME }

/**
 * Returns an id from the path. An id of the wrong form is `not_found`, like one that does not exist; in a PUT, which would create it, it is
 * `invalid_request` (D2.11).
 */
export function pathId(req: Request, name: string, { noun, pattern }: IdForm): string {
  const id = req.params[name]
  if (typeof id === 'string' && pattern.test(id)) return id
  if (req.method !== 'PUT') throw notFound(`no ${noun} has this id; check the id in the path`)
  throw invalidRequest(`the name of a ${noun} must match ${pattern.source}; change it in the path`, {
    param: `/${name}`,
  })
}

export type ValueForm = { pattern: RegExp; wanted: string }

/** The form of a parameter that has one of a few values. */
export const oneOf = (values: readonly string[]): ValueForm => ({
  pattern: new RegExp(`^(${values.join('|')})$`),
  wanted: `one of ${values.join(', ')}`,
})

/** Returns a query parameter (D2.11). Throws `invalid_request` when it is given twice or does not match `form`. */
export function queryValue(req: Request, name: string, form: ValueForm): string | undefined {
  const value: unknown = req.query[name]
  return value === undefined ? undefined : checkValue(value, name, form)
}

/** Returns a number from the query. Throws `invalid_request` when it is outside the range. */
export function queryNumber(req: Request, name: string, [min, max]: readonly [number, number]): number | undefined {
  const wanted = `a number from ${min} to ${max}`
  const text = queryValue(req, name, { pattern: NUMBER, wanted })
  if (text === undefined) return undefined
  const value = Number(text)
  if (value >= min && value <= max) return value
  throw invalidRequest(`${name} must be ${wanted}`, { param: `/${name}` })
}

/** A number as JSON writes it; at most 40 characters. */
const NUMBER = /^(?=.{1,40}$)\d+(\.\d+)?(e[+-]?\d+)?$/i

/** Whether a query parameter is `true`. Throws `invalid_request` for another value than `true` and `false`. */
export const queryFlag = (req: Request, name: string): boolean => queryValue(req, name, FLAG) === 'true'

const FLAG: ValueForm = { pattern: /^(true|false)$/, wanted: 'true or false' }

/** Returns a query parameter; the service behind the route checks its form. */
export const queryText = (req: Request, name: string): string | undefined => queryValue(req, name, TEXT)

const TEXT: ValueForm = { pattern: /^[^]{0,1024}$/, wanted: 'a text of at most 1024 characters' }

function checkValue(value: unknown, name: string, { pattern, wanted }: ValueForm): string {
  if (typeof value === 'string' && pattern.test(value)) return value
  throw invalidRequest(`${name} must be ${wanted}, given once`, { param: `/${name}` })
}

export const IDEMPOTENCY_KEY: ValueForm = {
  pattern: /^(?=.{1,255}$)[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/,
  wanted: '1 to 255 printable ASCII characters',
}

/** Throws `invalid_request` for a key that is empty, too long, or sent twice (D6.6). */
export function idempotencyKeyOf(req: Request): string | undefined {
  if (req.headers['idempotency-key'] === undefined) return undefined // Without lists of all headers for each request.
  const keys = req.headersDistinct['idempotency-key'] ?? []
  if (keys.length > 1) throw invalidRequest('send Idempotency-Key once', { param: '/Idempotency-Key' })
  return keys[0] === undefined ? undefined : checkValue(keys[0], 'Idempotency-Key', IDEMPOTENCY_KEY)
}

/** The fields of a run's start that a format without such fields takes from headers (D54.1). Throws `invalid_request` for another value. */
export function turnOf(req: Request): Pick<RunRequest, 'priority' | 'wait_secs'> {
  const { 'x-priority': priority, 'x-wait-secs': waitSecs } = req.headers
  return {
    ...(priority !== undefined && { priority: checkValue(priority, 'X-Priority', oneOf(PRIORITIES)) as Priority }),
    ...(waitSecs !== undefined && { wait_secs: Number(checkValue(waitSecs, 'X-Wait-Secs', WAIT_SECS)) }),
  }
}

const WAIT_SECS: ValueForm = {
  pattern: /^([1-9]\d{0,2}|[12]\d{3}|3[0-5]\d{2}|3600)$/,
  wanted: 'a whole number from 1 to 3600',
}

/** A whole number below 2^32, which fits into the messages between processes. */
const EVENT_ID: ValueForm = {
  pattern:
    /^(\d{1,9}|[0-3]\d{9}|4[01]\d{8}|42[0-8]\d{7}|429[0-3]\d{6}|4294[0-8]\d{5}|42949[0-5]\d{4}|429496[0-6]\d{3}|4294967[01]\d{2}|42949672[0-8]\d|429496729[0-5])$/,
  wanted: 'a whole number below 2^32',
}

/** Number of the last event that the client has: from the header, else from the query, else 0 (D4.5c). */
export function lastEventId(req: Request): number {
  const header = req.headers['last-event-id']
  if (header !== undefined) return Number(checkValue(header, 'Last-Event-ID', EVENT_ID))
  return Number(queryValue(req, 'last_event_id', EVENT_ID) ?? 0)
}

/** The id of the last event that the client has, from the header, else from the query, for a stream whose ids are no numbers. */
export function resumeIdOf(req: Request): { name: string; value: string } | undefined {
  const header = req.headers['last-event-id']
  if (typeof header === 'string' && header !== '') return { name: 'Last-Event-ID', value: header }
  const value = queryText(req, 'last_event_id')
  return value === undefined ? undefined : { name: 'last_event_id', value }
}

const DEFAULT_LIMIT = 50

const LIMIT: ValueForm = { pattern: /^([1-9]\d?|1\d\d|200)$/, wanted: 'a whole number from 1 to 200' }
const CURSOR: ValueForm = { pattern: /^[A-Za-z0-9_-]{1,4096}$/, wanted: 'the next_cursor of the previous page' }

/** Reads `limit` and `cursor` (D2.7). */
export function pageRequestOf(req: Request): PageRequest {
  const cursor = queryValue(req, 'cursor', CURSOR)
  const limit = Number(queryValue(req, 'limit', LIMIT) ?? DEFAULT_LIMIT)
  return { limit, ...(cursor !== undefined && { cursor }) }
}
