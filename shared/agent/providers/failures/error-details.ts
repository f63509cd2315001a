import type { JsonObject } from '../../../kernel/events.ts'
import { parseJson } from '../../../kernel/json.ts'
import { quotaLimits, type ToldLimits, toldLimits } from '../told-limits.ts'

/** The facts in an error of a provider package or of an HTTP response. */
export type ErrorDetails = {
  /** The HTTP status, or the one that corresponds to an error event inside a stream. */
  status: number | undefined
  /** The codes, types and reasons that the provider names, in lower case, separated by blanks. */
  providerCodes: string
  /** The provider's own text. Callers see only an excerpt of it. */
  providerMessage: string
  retryAfterMs: number | undefined
  /** The account's limits in the response. */
  told: ToldLimits
  /** The address that was called. */
  url: URL | null
  /** The code that Node or undici gives a failed connection; undefined when there is a status. */
  networkCode: string | undefined
}

/** Reads an error that was thrown, or that came as a part of the stream. Never throws. */
export function readErrorDetails(error: unknown): ErrorDetails {
  const outer = asObject(error)
  const inner = providerErrorOf(outer)
  const details = Array.isArray(inner['details']) ? inner['details'].map(asObject) : []
  const names = [inner['code'], inner['type'], inner['status'], ...details.map((detail) => detail['reason'])]
  const headers = asObject(outer['responseHeaders'])
  const providerCodes = names.filter(isText).join(' ').toLowerCase()
  const status = statusOf(outer, inner) ?? statusForCodes(providerCodes)
  return {
    status,
    providerCodes,
    providerMessage: messageOf(inner),
    retryAfterMs: retryAfterHeader(headers) ?? retryDelayDetail(details),
    told: {
      ...quotaLimits(details.flatMap((detail) => detail['violations'] ?? [])),
      ...toldLimits((name) => headers[name]),
    },
    url: isText(outer['url']) ? URL.parse(outer['url']) : null,
    networkCode: status === undefined ? findNetworkCode(error) : undefined,
  }
}

/**
 * Finds the provider's own error object: in the data that the package parsed, in the response's body, in a chunk of the
 * stream (`value`), or the error part itself.
 */
function providerErrorOf(error: JsonObject): JsonObject {
  const body = error['responseBody']
  const sources = [error['data'], isText(body) ? parseJson(body) : undefined, error['value'], error]
  for (const source of sources) {
    const outer = asObject(Array.isArray(source) ? source[0] : source)
    const inner = outer['error'] ?? asObject(outer['response'])['error']
    if (isText(inner)) return { message: inner }
    if (inner !== undefined && inner !== null) return asObject(inner)
    if (source !== error && MESSAGES.some((name) => outer[name])) return outer
  }
  return error instanceof Error ? {} : error
}

/** The fields in which servers put the text of an error. */
const MESSAGES = ['message', 'detail', 'msg']

/**
 * The provider's text. OpenRouter quotes the error of the provider behind it in `metadata.raw`, as JSON or as text; FastAPI's `detail`
 * is a text, an object, or a list of `{"msg": …}`.
 */
function messageOf(inner: JsonObject, depth = 0): string {
  const { raw } = asObject(inner['metadata']) as { raw?: unknown }
  const quoted = isText(raw) ? textIn(parseJson(raw), depth) || raw : ''
  const own = MESSAGES.map((name) => textIn(inner[name], depth)).find(isText) ?? ''
  return [own, quoted].filter(isText).join(': ')
}

const MAX_DEPTH = 4

function textIn(value: unknown, depth: number): string {
  if (isText(value)) return value
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return ''
  if (Array.isArray(value))
    return value
      .map((each) => textIn(each, depth + 1))
      .filter(isText)
      .join('; ')
  return messageOf(providerErrorOf({ data: value }), depth + 1)
}

function statusOf(outer: JsonObject, inner: JsonObject): number | undefined {
  return [outer['statusCode'], inner['statusCode'], inner['code'], inner['status']].map(Number).find(isFailureStatus)
}

/** A 2xx is no failure status: it belongs to a stream that failed after its headers. */
const isFailureStatus = (status: number) => Number.isInteger(status) && status >= 300 && status <= 599

/** The first pattern that matches decides. */
const STATUS_FOR_CODES: [codes: RegExp, status: number][] = [
  [/insufficient_quota|billing/, 402],
  [/rate_limit|resource_exhausted|too_many_requests/, 429],
  [/authentication|api_key|unauthenticated/, 401],
  [/permission/, 403],
  [/not_found/, 404],
  [/context_length|invalid|bad_request/, 400],
  [/overload|unavailable/, 503],
  [/timeout|deadline/, 504],
  [/server_error|api_error|internal/, 500],
]

const statusForCodes = (codes: string) => STATUS_FOR_CODES.find(([pattern]) => pattern.test(codes))?.[1]

const MAX_CAUSES = 6

function findNetworkCode(error: unknown): string | undefined {
  let cause = asObject(error)
  for (let depth = 0; depth < MAX_CAUSES; depth++) {
    const code = cause['code']
    if (isText(code) && /^[A-Z][A-Z0-9_]+$/.test(code)) return code
    cause = asObject(cause['cause'])
  }
  return undefined
}

/** `retry-after-ms` in milliseconds, which some providers send, or else `Retry-After` in seconds or as a date. */
function retryAfterHeader(headers: JsonObject): number | undefined {
  const ms = headers['retry-after-ms']
  if (isText(ms) && Number(ms) >= 0) return Number(ms)
  const value = headers['retry-after']
  if (!isText(value)) return undefined
  const waitMs = Number.isNaN(Number(value)) ? Date.parse(value) - Date.now() : Number(value) * 1_000
  return Number.isNaN(waitMs) ? undefined : Math.max(0, Math.round(waitMs))
}

/** Google's form, in the body: `{"@type": "…RetryInfo", "retryDelay": "37s"}`. */
function retryDelayDetail(details: JsonObject[]): number | undefined {
  const delay = details.map((detail) => detail['retryDelay']).find(isText)
  const secs = delay === undefined ? Number.NaN : Number.parseFloat(delay)
  return Number.isNaN(secs) ? undefined : Math.round(secs * 1_000)
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const asObject = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null ? (value as JsonObject) : {}
