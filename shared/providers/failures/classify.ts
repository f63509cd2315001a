import { AppError } from '../../errors.ts'
import type { Failure } from '../port.ts'
import { type ErrorDetails, readErrorDetails } from './error-details.ts'
import { excerpt } from './excerpt.ts'
import { type FailedCall, failure, filtered, keyVariables, RETRY } from './failures.ts'

/**
 * What an error comes to, in our own words: decided on statuses and codes, and where a provider has none, on its words.
 * `undefined` when it holds none of them.
 */
export function classifyFailure(error: unknown, call: FailedCall): Failure | undefined {
  const refused = refusal(error)
  if (refused) return failure('provider_rejected', 'refused', refused.message)
  const evidence = readErrorDetails(error)
  const { status, codes, words, network, retryAfterMs } = evidence
  if (network !== undefined) return connectionFailure(network, call)
  if (isOutOfCredit(evidence)) {
    const message = `the account at ${call.type} is out of credit${http(status)}: add credit there, or use another key`
    return failure('provider_rejected', 'out_of_credit', message, { isFailover: true })
  }
  if (isTooLong(evidence)) {
    return failure('context_too_long', 'context_too_long', `the conversation is too long for ${call.model}`)
  }
  if (status === 401 || status === 403 || /api_key/.test(codes)) return refusedKey(status, call)
  if (/content_filter|content_policy|responsibleai/.test(codes)) return filtered(call)
  if (status === undefined) return words === '' ? undefined : brokenStream(call)
  const wait = retryAfterMs === undefined ? RETRY : { ...RETRY, retryAfterMs }
  if (status === 429) {
    const message = `${call.type} limits the rate of requests${http(status)}: wait, or raise the limit there`
    return failure('provider_rate_limited', 'http_429', message, wait)
  }
  if (status === 408 || status === 409 || status >= 500) {
    return failure(
      'provider_unavailable',
      `http_${status}`,
      `${call.type} failed${http(status)}: try again later`,
      wait,
    )
  }
  return rejected(status, words, call)
}

const http = (status: number | undefined) => (status === undefined ? '' : ` (HTTP ${status})`)

/** A refusal of our own, such as the egress guard's, wherever the package has wrapped it. */
function refusal(error: unknown): AppError | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 6; cause = cause.cause, depth++) {
    if (cause instanceof AppError && cause.kind === 'invalid_request') return cause
  }
  return undefined
}

/** 402, and what OpenAI (429) and Anthropic (400) say instead of it. */
const isOutOfCredit = ({ status, codes, words }: ErrorDetails) =>
  status === 402 ||
  /insufficient_quota|billing/.test(codes) ||
  (status !== undefined &&
    status < 500 &&
    /credit balance is too low|insufficient (?:credit|balance|funds)/i.test(words))

const TOO_LONG = new RegExp(
  [
    'maximum context length', // OpenAI, vLLM, DeepSeek, OpenRouter
    'context (?:window|length|size|limit)', // OpenAI's responses, llama.cpp, Ollama, LM Studio
    'prompt is too long', // Anthropic
    'input is too long', // Bedrock behind gateways
    'input token count.*exceeds|exceeds the maximum number of tokens', // Google
    'longer than the maximum model length', // vLLM, of late
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

/** No provider says this with 401, 403 or 429; 413 means the same, since a shorter conversation cures it. */
const isTooLong = ({ status, codes, words }: ErrorDetails) =>
  status === 413 ||
  /context_length|exceed_context|context_window|string_above_max_length/.test(codes) ||
  ((status === undefined || status === 400 || status === 422 || status >= 500) && TOO_LONG.test(words))

function refusedKey(status: number | undefined, call: FailedCall): Failure {
  const message =
    status === 403
      ? `${call.type} denied access to ${call.model} (HTTP 403): check what the key in ${keyVariables(call)} may use`
      : `${call.type} refused the API key${http(status)}: check ${keyVariables(call)}`
  return failure('provider_auth', `http_${status ?? 401}`, message)
}

/** Retrying cannot help, changing the request or the configuration can: so this tells the provider's own words too. */
function rejected(status: number, words: string, call: FailedCall): Failure {
  const said = [400, 404, 422].includes(status) ? excerpt(words, call.apiKey) : ''
  const message = advice(status, call)
  return failure('provider_rejected', `http_${status}`, said === '' ? message : `${message}. It says: ${said}`)
}

function advice(status: number, { type, model }: FailedCall): string {
  if (status < 400) return `${type} redirected the request${http(status)}, which is not followed: check MODEL_BASE_URL`
  if (status === 404) return `${type} does not know the model ${model}${http(status)}: check MODEL and MODEL_BASE_URL`
  return `${type} rejected the request${http(status)}`
}

const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])

const CONNECTION = [
  {
    codes: /^ECONNREFUSED$/,
    reason: 'connection_refused',
    problem: ' refuses connections: check that it runs, and MODEL_BASE_URL',
  },
  { codes: /^(?:ENOTFOUND|EAI_)/, reason: 'dns_error', problem: "'s host was not found: check MODEL_BASE_URL" },
  { codes: /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)/, reason: 'connection_reset', problem: ' broke the connection' },
]

export function connectionFailure(network: string, { type }: FailedCall): Failure {
  if (TIMEOUTS.has(network)) {
    return failure(
      'timeout',
      'connect_timeout',
      `${type} did not accept a connection in time: check MODEL_BASE_URL`,
      RETRY,
    )
  }
  if (/CERT|TLS|SSL|VERIFY/.test(network)) {
    const message = `the certificate of ${type} was not accepted: check MODEL_BASE_URL`
    return failure('provider_unavailable', 'tls_error', message, { isFailover: true })
  }
  const known = CONNECTION.find(({ codes }) => codes.test(network))
  const { reason, problem } = known ?? { reason: 'no_answer', problem: ' did not answer' }
  return failure('provider_unavailable', reason, type + problem, RETRY)
}

const brokenStream = ({ type }: FailedCall) =>
  failure('provider_unavailable', 'stream_error', `${type} failed within its answer`, RETRY)

/** What came cannot be read, though nobody says that anything is wrong. */
export const unreadable = (reason: 'bad_chunk' | 'bad_answer', { type }: FailedCall): Failure =>
  failure('provider_unavailable', reason, `${type} gave no answer that can be read`, RETRY)
