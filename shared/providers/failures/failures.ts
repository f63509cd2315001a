import type { Breach, ModelLimits } from '../limits.ts'
import type { Failure, FailureCode } from '../port.ts'

/** The call that failed, as far as the words about it depend on it. */
export type FailedCall = {
  type: string
  model: string
  apiKey: string
  /** Where such a provider's key is usually configured. */
  keyVariable: string | undefined
}

type Fields = Partial<Pick<Failure, 'isRetryable' | 'isFailover' | 'retryAfterMs'>>

export function failure(code: FailureCode, reason: string, message: string, fields: Fields = {}): Failure {
  const { isRetryable = false, isFailover = isRetryable, retryAfterMs } = fields
  return { code, reason, message, isRetryable, isFailover, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

export const RETRY = { isRetryable: true }

export const keyVariables = ({ keyVariable }: FailedCall) =>
  keyVariable === undefined ? 'MODEL_API_KEY' : `MODEL_API_KEY or ${keyVariable}`

export const missingKey = (call: FailedCall): Failure =>
  failure('provider_auth', 'missing_api_key', `${call.type} needs an API key: set ${keyVariables(call)}`)

export const malformedKey = (call: FailedCall): Failure =>
  failure(
    'provider_auth',
    'malformed_api_key',
    `the API key for ${call.type} holds characters no key has: check ${keyVariables(call)}`,
  )

export const truncated = ({ type }: FailedCall): Failure =>
  failure('provider_unavailable', 'truncated', `${type} ended its answer before it was complete`, RETRY)

/** `raw` is the provider's own word for it, told only when it is no more than a word. */
export function brokenOff({ type }: FailedCall, raw = ''): Failure {
  const reason = /^\w{1,40}$/.test(raw) ? raw.toLowerCase() : 'empty_answer'
  return failure('provider_unavailable', reason, `${type} broke its answer off`, RETRY)
}

export const filtered = ({ type }: FailedCall): Failure =>
  failure('content_filtered', 'content_filter', `the content filter of ${type} stopped the answer`)

/** A limit of ours ended the call (reliability.md 2.2 "Provider"). */
export function breachFailure(breach: Breach, { type }: FailedCall, limits: ModelLimits): Failure {
  const problems: Record<Breach, string> = {
    first_byte: `did not begin its answer within ${secs(limits.firstByteMs)}`,
    idle: `sent nothing for ${secs(limits.idleMs)}`,
    turn: `did not end its answer within ${secs(limits.turnMs)}`,
    turn_bytes: `sent more than ${limits.maxTurnBytes} bytes in one answer`,
    event_bytes: `sent more than ${limits.maxEventBytes} bytes in one event`,
    not_utf8: 'sent bytes that are not UTF-8 text',
    web_page: 'answered with a web page: check MODEL_BASE_URL',
  }
  const message = `${type} ${problems[breach]}`
  if (breach === 'web_page') return failure('provider_rejected', breach, message)
  const isLate = breach === 'first_byte' || breach === 'idle' || breach === 'turn'
  return isLate
    ? failure('timeout', `${breach}_timeout`, message, RETRY)
    : failure('provider_unavailable', breach, message, { isFailover: true })
}

const secs = (ms: number) => `${ms / 1_000} s`
