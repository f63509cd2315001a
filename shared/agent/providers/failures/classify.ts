import { AppError, hasKind } from '../../../kernel/errors.ts'
import { quoted, truncate } from '../../../kernel/text.ts'
import { NO_FLEX } from '../flex.ts'
import type { Failure } from '../port.ts'
import { type ErrorDetails, readErrorDetails } from './error-details.ts'
import { excerpt } from './excerpt.ts'
import { addressSetting, contentFiltered, type FailedCall, failure, keySetting, RETRYABLE } from './failures.ts'

/**
 * Classifies an error of a model call. Statuses and codes decide, and the provider's text only if the provider sends
 * neither. Returns `undefined` when the error has none of them.
 */
export function classifyFailure(error: unknown, call: FailedCall): Failure | undefined {
  const refusal = findRefusal(error)
  if (refusal) return failure('provider_rejected', 'refused', refusal.message)
  const details = readErrorDetails(error)
  const { status, providerCodes, providerMessage, networkCode } = details
  if (networkCode !== undefined) return connectionFailure(networkCode, call)
  if (isOutOfCredit(details)) {
    const message = `the account at ${call.type} is out of credit${http(status)}: add credit there, or use another key`
    return failure('provider_rejected', 'out_of_credit', message, { isFailover: true })
  }
  if (isTooLong(details)) {
    const windowTokens = namedWindow(providerMessage)
    const problem = failure('context_too_long', 'context_too_long', `the conversation is too long for ${call.model}`)
    return windowTokens === undefined ? problem : { ...problem, windowTokens }
  }
  if (status === 401 || status === 403 || /api_key/.test(providerCodes)) return refusedKey(status, call)
  if (/content_filter|content_policy|responsibleai/.test(providerCodes)) return contentFiltered(call)
  if (status === undefined) return providerMessage === '' ? undefined : streamError(call)
  return failureForStatus(status, details, call)
}

const http = (status: number | undefined) => (status === undefined ? '' : ` (HTTP ${status})`)

/** Finds a refusal of this service, such as one of the egress guard, in the chain of causes. */
function findRefusal(error: unknown): AppError | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 6; cause = cause.cause, depth++) {
    if (hasKind(cause, 'invalid_request')) return cause
  }
  return undefined
}

/** Status 402. OpenAI sends 429 instead, Anthropic 400. */
const isOutOfCredit = ({ status, providerCodes, providerMessage }: ErrorDetails) =>
  status === 402 ||
  /insufficient_quota|billing/.test(providerCodes) ||
  (status !== undefined &&
    status < 500 &&
    /credit balance is too low|insufficient (?:credit|balance|funds)/i.test(providerMessage))

const TOO_LONG = new RegExp(
  [
    'maximum context length', // OpenAI, vLLM, DeepSeek, OpenRouter
    'context (?:window|length|size|limit)', // OpenAI's responses, llama.cpp, Ollama, LM Studio
    'prompt is too long', // Anthropic
    'input is too long', // Bedrock behind gateways
    'input token count.*exceeds|exceeds the maximum number of tokens', // Google
    'longer than the maximum model length', // newer versions of vLLM
    'exceeded model token limit', // Moonshot
    'range of input length', // DashScope
    'exceeds max length', // Zhipu
    'too many tokens', // Cohere
    'maximum (?:prompt|input) length', // xAI
    'too large for model', // Mistral
    'must be <= \\d+ (?:tokens|, but)', // text-generation-inference
  ].join('|'),
  'i',
)

/**
 * For 401 and 403 the text is not read: no provider reports a long conversation with these. Rate limits count tokens, too, so 429
 * means a long conversation only when the single request is above the limit. 413 always does, because a shorter conversation solves
 * it.
 */
const isTooLong = ({ status, providerCodes, providerMessage }: ErrorDetails) =>
  status === 413 ||
  /context_length|exceed_context|context_window|string_above_max_length/.test(providerCodes) ||
  ((status === undefined || status === 400 || status === 422 || status >= 500) && TOO_LONG.test(providerMessage)) ||
  (status === 429 && /request too large/i.test(providerMessage))

/** How providers state their window, beside the phrases of `TOO_LONG`. */
const WINDOWS = [
  /(?:maximum (?:context|model|prompt|input) length|context (?:window|length|size|limit))\D{0,40}?([\d,]+)/i,
  /> ([\d,]+) maximum/,
  /maximum number of tokens allowed \(?([\d,]+)/i,
]

/** The window that the text of a rejection names, in tokens. */
function namedWindow(text: string): number | undefined {
  const named = WINDOWS.map((pattern) => pattern.exec(text)?.[1]).find((digits) => digits !== undefined)
  const tokens = Number(named?.replaceAll(',', ''))
  return tokens >= 256 ? tokens : undefined
}

function refusedKey(status: number | undefined, call: FailedCall): Failure {
  const message =
    status === 403
      ? `${call.type} denied access to ${call.model} (HTTP 403): check what the key in ${keySetting(call)} may use`
      : `${call.type} refused the API key${http(status)}: check ${keySetting(call)}`
  return failure('provider_auth', `http_${status ?? 401}`, message)
}

const streamError = ({ type }: FailedCall) =>
  failure('provider_unavailable', 'stream_error', `${type} failed within its answer`, RETRYABLE)

function failureForStatus(
  status: number,
  { providerCodes, providerMessage, retryAfterMs, told, url }: ErrorDetails,
  call: FailedCall,
): Failure {
  if (status === 429 && providerCodes.includes(NO_FLEX))
    return failure(
      'provider_unavailable',
      NO_FLEX,
      `${call.type} has no room in its flex tier${http(status)}`,
      RETRYABLE,
    )
  const fields = retryAfterMs === undefined ? RETRYABLE : { ...RETRYABLE, retryAfterMs }
  if (status === 429) {
    const message = `${call.type} limits the rate of requests${http(status)}: wait, or raise the limit there`
    return failure('provider_rate_limited', 'http_429', message, {
      ...fields,
      ...((told.tokens || told.requests) && { told }),
    })
  }
  if (status === 408 || status === 409 || status >= 500) {
    const message = `${call.type} failed${http(status)}: try again later`
    return failure('provider_unavailable', `http_${status}`, message, fields)
  }
  return rejected(status, { providerMessage, url }, call)
}

/** Only a change of the request or of the configuration can help, so the message includes the provider's own text. */
type Rejection = Pick<ErrorDetails, 'providerMessage' | 'url'>

function rejected(status: number, { providerMessage, url }: Rejection, call: FailedCall): Failure {
  const quote = [400, 404, 422].includes(status) ? excerpt(providerMessage, call.apiKey) : ''
  const message = advice(status, url, call)
  return failure('provider_rejected', `http_${status}`, quote === '' ? message : `${message}. It says: ${quote}`)
}

function advice(status: number, url: URL | null, call: FailedCall): string {
  const { type, model, instance } = call
  const address = addressSetting(call)
  if (status < 400) return `${type} redirected the request${http(status)}, which is not followed: check ${address}`
  if (status === 404) {
    const setting = instance === undefined ? 'MODEL' : 'the model of the route'
    return `${type} does not know the model ${quoted(model)}${placeOf(url, call)}${http(status)}: check ${setting} and ${address}`
  }
  return `${type} rejected the request${http(status)}`
}

/** The host of the server's own provider may be an internal one (D4.8); a tenant already knows the host of its instance. */
function placeOf(url: URL | null, { instance }: FailedCall): string {
  if (url === null) return ''
  return ` at ${instance === undefined ? '' : url.host}${truncate(url.pathname, MAX_PATH_CHARS)}`
}

const MAX_PATH_CHARS = 200

const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])

const CONNECTION_PROBLEMS = [
  {
    codes: /^ECONNREFUSED$/,
    reason: 'connection_refused',
    problem: ' refuses connections: check that it runs, and ',
    isOfAddress: true,
  },
  { codes: /^(?:ENOTFOUND|EAI_)/, reason: 'dns_error', problem: "'s host was not found: check ", isOfAddress: true },
  {
    codes: /^UND_ERR_(?:ABORTED|PRX_CONN)$/,
    reason: 'proxy_error',
    problem: ' was not reached through the proxy: check HTTPS_PROXY',
    isOfAddress: false,
  },
  {
    codes: /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET|HPE_INVALID_EOF_STATE)/,
    reason: 'connection_reset',
    problem: ' broke the connection',
    isOfAddress: false,
  },
]

/** The failure for a code of Node or undici; an unknown one, such as '', is `no_answer`. */
export function connectionFailure(networkCode: string, call: FailedCall): Failure {
  const { type } = call
  const address = addressSetting(call)
  if (TIMEOUTS.has(networkCode)) {
    const message = `${type} did not accept a connection in time: check ${address}`
    return failure('timeout', 'connect_timeout', message, RETRYABLE)
  }
  if (/CERT|TLS|SSL|VERIFY/.test(networkCode)) {
    const message = `the certificate of ${type} was not accepted: check ${address}`
    return failure('provider_unavailable', 'tls_error', message, { isFailover: true })
  }
  const known = CONNECTION_PROBLEMS.find(({ codes }) => codes.test(networkCode))
  const { reason, problem, isOfAddress } = known ?? {
    reason: 'no_answer',
    problem: ' did not answer',
    isOfAddress: false,
  }
  return failure('provider_unavailable', reason, `${type}${problem}${isOfAddress ? address : ''}`, RETRYABLE)
}
