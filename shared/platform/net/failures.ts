import { AppError, type ErrorCode, invalidRequest } from '../../kernel/errors.ts'

/** The facts about an exchange that decide how its error is reported. */
export type ExchangeLimits = {
  host: string
  /** The caller's signal. */
  signal: AbortSignal
  /** Aborts when the time for the exchange is over. */
  deadline: AbortSignal
  maxBytes: number
}

export const refused = (message: string) => invalidRequest(message, { code: 'egress_refused' })

export const compressed = (host: string) =>
  upstream('egress_unreachable', `${host} answered in a compressed form it was not asked for.`)

export const tooLarge = (host: string, cause?: unknown) =>
  upstream('egress_too_large', `The answer of ${host} is too large.`, cause)

const upstream = (code: ErrorCode, message: string, cause?: unknown) =>
  new AppError('upstream', message, { code, cause })

const TIMEOUTS = ['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']
const OVERFLOWS = ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW']

/** Converts the error of an exchange into the error that is thrown. Foreign messages are replaced, because they contain addresses. */
export function toEgressFailure(cause: unknown, { host, signal, deadline }: ExchangeLimits): unknown {
  if (signal.aborted) return signal.reason
  if (cause instanceof AppError) return cause
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'UND_ERR_INVALID_ARG') return cause // A bug of the caller.
  if (deadline.aborted || TIMEOUTS.includes(code)) {
    return upstream('egress_timeout', `${host} did not answer in time.`, cause)
  }
  if (OVERFLOWS.includes(code)) return tooLarge(host, cause)
  return upstream('egress_unreachable', `${host} could not be reached or broke off.`, cause)
}

/**
 * Converts an error of `fetch`. A failure that a retry may solve keeps the form of `fetch`, a `TypeError` with a cause, because
 * packages that retry look for it.
 */
export function toFetchFailure(cause: unknown, host: string): unknown {
  const { signal } = new AbortController()
  const limits = { host, signal, deadline: signal, maxBytes: 0 }
  const failure = toEgressFailure(cause instanceof Error ? cause.cause : cause, limits)
  if (failure instanceof AppError && failure.kind === 'invalid_request') return failure
  return new TypeError('fetch failed', { cause: failure })
}
