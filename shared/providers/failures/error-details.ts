import type { JsonObject } from '../../events.ts'

/** What is known of a failed call, whichever way the package told it. */
export type ErrorDetails = {
  /** The HTTP status, or the one that an error inside the stream stands for. */
  status?: number
  /** Codes, types and reasons that the provider names, in lower case, with blanks between them. */
  codes: string
  /** The provider's own words: for decisions inside the adapter and, cleaned, for a rejected caller. */
  words: string
  retryAfterMs?: number
  /** Node's or undici's code of what happened to the connection. */
  network?: string
}

/** Reads an error that `doStream` threw, or that came as an `error` part. It never throws itself. */
export function readErrorDetails(error: unknown): ErrorDetails {
  const thrown = asObject(error)
  const told = providerError(thrown)
  const details = Array.isArray(told['details']) ? told['details'].map(asObject) : []
  const named = [told['code'], told['type'], told['status'], ...details.map((detail) => detail['reason'])]
  const codes = named.filter(isText).join(' ').toLowerCase()
  const status = statusOf(thrown, told) ?? statusFor(codes)
  const retryAfterMs = retryAfter(asObject(thrown['responseHeaders'])) ?? retryDelay(details)
  const network = status === undefined ? networkCode(error) : undefined
  return {
    ...(status !== undefined && { status }),
    codes,
    words: [told['message'], told['detail']].find(isText) ?? '',
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(network !== undefined && { network }),
  }
}

/** The provider's own error object: parsed by the package, or the body, a chunk of the stream, or the error part itself. */
function providerError(thrown: JsonObject): JsonObject {
  const sources = [thrown['data'], parse(thrown['responseBody']), thrown['value'], thrown]
  for (const source of sources) {
    const outer = asObject(Array.isArray(source) ? source[0] : source)
    const inner = outer['error'] ?? asObject(outer['response'])['error']
    if (isText(inner)) return { message: inner }
    if (inner !== undefined && inner !== null) return asObject(inner)
    if (source !== thrown && (isText(outer['message']) || isText(outer['detail']))) return outer
  }
  return thrown instanceof Error ? {} : thrown
}

function statusOf(thrown: JsonObject, told: JsonObject): number | undefined {
  return [thrown['statusCode'], told['statusCode'], told['code'], told['status']].map(Number).find(isFailure)
}

/** A 200 is a stream that broke later: its status says nothing. */
const isFailure = (status: number) => Number.isInteger(status) && status >= 300 && status <= 599

const STATUS_OF: [codes: RegExp, status: number][] = [
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

const statusFor = (codes: string) => STATUS_OF.find(([pattern]) => pattern.test(codes))?.[1]

const MAX_CAUSES = 6

function networkCode(error: unknown): string | undefined {
  let cause = asObject(error)
  for (let depth = 0; depth < MAX_CAUSES; depth++) {
    const code = cause['code']
    if (isText(code) && /^[A-Z][A-Z0-9_]+$/.test(code)) return code
    cause = asObject(cause['cause'])
  }
  return undefined
}

/** `Retry-After` in seconds or as a date, or the finer `retry-after-ms` that some send beside it. */
function retryAfter(headers: JsonObject): number | undefined {
  const ms = headers['retry-after-ms']
  if (isText(ms) && Number(ms) >= 0) return Number(ms)
  const value = headers['retry-after']
  if (!isText(value)) return undefined
  const wait = Number.isNaN(Number(value)) ? Date.parse(value) - Date.now() : Number(value) * 1_000
  return Number.isNaN(wait) ? undefined : Math.max(0, Math.round(wait))
}

/** Google says it in the body: `{"@type": "…RetryInfo", "retryDelay": "37s"}`. */
function retryDelay(details: JsonObject[]): number | undefined {
  const delay = details.map((detail) => detail['retryDelay']).find(isText)
  const secs = delay === undefined ? Number.NaN : Number.parseFloat(delay)
  return Number.isNaN(secs) ? undefined : Math.round(secs * 1_000)
}

function parse(text: unknown): unknown {
  if (!isText(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined // A page or plain text: nothing in it is a code.
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const asObject = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null ? (value as JsonObject) : {}
