import { PROVIDER_TYPES, type ProviderType } from '../../../kernel/provider-types.ts'
import { quoted } from '../../../kernel/text.ts'
import type { Breach, ModelLimits } from '../limits.ts'
import type { Failure, FailureCode, ModelRequest } from '../port.ts'

/** The facts about a call that its failure messages name. `apiKey` is removed from the provider's texts. */
export type FailedCall = {
  type: ProviderType
  model: string
  apiKey: string
  /** Name of the tenant's instance that was called; `undefined`: the server's own configuration was. */
  instance: string | undefined
}

type Fields = Partial<Pick<Failure, 'isRetryable' | 'isFailover' | 'retryAfterMs' | 'told'>>

/** Builds a failure. It is final unless `fields` says otherwise; a retryable failure also allows failover. */
export function failure(code: FailureCode, reason: string, message: string, fields: Fields = {}): Failure {
  const { isRetryable = false, isFailover = isRetryable, retryAfterMs, told } = fields
  const known = { ...(retryAfterMs !== undefined && { retryAfterMs }), ...(told && { told }) }
  return { code, reason, message, isRetryable, isFailover, ...known }
}

export const RETRYABLE = { isRetryable: true }

/** Where the provider's key is configured, as text for a message. */
export function keySetting({
  type,
  instance,
}: Pick<FailedCall, 'type'> & Partial<Pick<FailedCall, 'instance'>>): string {
  if (instance !== undefined) return `the key of instance ${instance}`
  const [usual] = PROVIDER_TYPES[type].keyVariables
  return usual === undefined ? 'MODEL_API_KEY' : `MODEL_API_KEY or ${usual}`
}

/** Where the provider's address is configured, as text for a message. */
export const addressSetting = ({ instance }: Pick<FailedCall, 'instance'>): string =>
  instance === undefined ? 'MODEL_BASE_URL' : `the url of instance ${instance}`

/**
 * The failure of every call of a provider with this key; `undefined` when the key is usable. A missing key matters only at the
 * provider's own address, so without `baseUrl`: a gateway may add the key itself.
 */
export function keyFailure(
  call: Pick<FailedCall, 'type' | 'apiKey'> & Partial<Pick<FailedCall, 'instance'>>,
  baseUrl: string | undefined,
): Failure | undefined {
  const { type, apiKey } = call
  if (apiKey === '' && baseUrl === undefined && PROVIDER_TYPES[type].isKeyRequired) {
    return failure('provider_auth', 'missing_api_key', `${type} needs an API key: set ${keySetting(call)}`)
  }
  if (isHeaderValue(apiKey)) return undefined
  const message = `the API key for ${type} contains characters that no key has: check ${keySetting(call)}`
  return failure('provider_auth', 'malformed_api_key', message)
}

/** With any other key the HTTP client would throw an error that contains the key. */
const isHeaderValue = (apiKey: string): boolean => /^[\x21-\x7e]*$/.test(apiKey)

/** The stream ended before the model's last event. */
export const truncatedAnswer = ({ type }: FailedCall): Failure =>
  failure('provider_unavailable', 'truncated', `${type} ended its answer before it was complete`, RETRYABLE)

/** After tool calls a model may have nothing more to say. In other cases an end without text and without a tool call is no answer. */
export const mayBeEmpty = ({ messages }: Pick<ModelRequest, 'messages'>): boolean => messages.at(-1)?.role === 'tool'

export const emptyAnswer = ({ type, model }: FailedCall): Failure => {
  const message = `${type} ended its answer without text and without a tool call: try again, or use another model than ${quoted(model)}`
  return failure('provider_unavailable', 'empty_answer', message, RETRYABLE)
}

/** The failure for an answer that did not end regularly. `rawReason`, the provider's own reason, is repeated when it is one word. */
export function abortedAnswer({ type }: FailedCall, rawReason = ''): Failure {
  const reason = /^\w{1,40}$/.test(rawReason) ? rawReason.toLowerCase() : 'empty_answer'
  return failure('provider_unavailable', reason, `${type} broke its answer off`, RETRYABLE)
}

/** The failure for a response without the expected format, although the provider reported no error. */
export const unreadableAnswer = (reason: 'bad_chunk' | 'bad_answer', { type }: FailedCall): Failure =>
  failure('provider_unavailable', reason, `${type} sent an answer that cannot be read`, RETRYABLE)

export const contentFiltered = ({ type }: FailedCall): Failure =>
  failure('content_filtered', 'content_filter', `the content filter of ${type} stopped the answer`)

/** The failure for a call that one of our own limits ended. */
export function breachFailure(breach: Breach, call: FailedCall, limits: ModelLimits): Failure {
  const problems: Record<Breach, string> = {
    first_byte: `did not begin its answer within ${secs(limits.firstByteMs)}`,
    idle: `sent nothing for ${secs(limits.idleMs)}`,
    turn: `did not end its answer within ${secs(limits.turnMs)}`,
    turn_bytes: `sent more than ${limits.maxTurnBytes} bytes in one answer`,
    event_bytes: `sent more than ${limits.maxEventBytes} bytes in one event`,
    not_utf8: 'sent bytes that are not UTF-8 text',
    web_page: `answered with a web page: check ${addressSetting(call)}`,
  }
  const message = `${call.type} ${problems[breach]}`
  if (breach === 'web_page') return failure('provider_rejected', breach, message)
  const isTimeout = breach === 'first_byte' || breach === 'idle' || breach === 'turn'
  return isTimeout
    ? failure('timeout', `${breach}_timeout`, message, RETRYABLE)
    : failure('provider_unavailable', breach, message, { isFailover: true })
}

const secs = (ms: number) => `${ms / 1_000} s`
