import { AppError, type ErrorKind } from '../../../kernel/errors.ts'
import type { FlowFailure, RunErrorCode } from '../../../kernel/events.ts'

/** Seconds after which a client may try again. */
export const RETRY_SECS = 5

/** The stored failure of an execution as the error of its HTTP answer. */
export function errorOf({ status, type, message, code }: FlowFailure, traceId: string): AppError {
  return new AppError(type.slice(0, -'_error'.length) as ErrorKind, message, {
    status,
    traceId,
    ...(code !== undefined && { code: code as RunErrorCode }),
    ...((status === 503 || status === 429) && { retryAfterSecs: RETRY_SECS }),
  })
}

/** The same refusal, which names the execution that it refuses (D6.5). */
export function withTrace(cause: AppError, traceId: string): AppError {
  const { kind, message, param, code, status, retryAfterSecs } = cause
  return new AppError(kind, message, {
    param,
    status,
    traceId,
    cause,
    ...(code !== undefined && { code }),
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}
