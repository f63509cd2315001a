import type { RunErrorCode } from './events.ts'
import { truncate } from './text.ts'

/**
 * The class of a failed request. It decides the HTTP status and the `type` on the wire (api.md "Errors", D2.3). Code decides by
 * kind and code, never by message text.
 */
export type ErrorKind =
  | 'invalid_request'
  | 'authentication'
  | 'permission'
  | 'not_found'
  | 'conflict'
  | 'rate_limit'
  | 'internal'
  | 'upstream'
  | 'unavailable'

const STATUS: Record<ErrorKind, number> = {
  invalid_request: 400,
  authentication: 401,
  permission: 403,
  not_found: 404,
  conflict: 409,
  rate_limit: 429,
  internal: 500,
  upstream: 502,
  unavailable: 503,
}

/** The `code` of an error, where its kind is not precise enough. The codes of events are in `events.ts` (D4.8, D4.9). */
export type ErrorCode =
  | 'config_disabled'
  | 'egress_refused'
  | 'egress_timeout'
  | 'egress_too_large'
  | 'egress_unreachable'
  | 'fenced'
  | 'idempotency_mismatch'
  | 'invalid_token'
  | 'master_key_missing'
  | 'missing_scope'
  | 'secret_missing'
  | 'secret_unreadable'
  | 'worker_draining'
  | 'worker_silent'

/** One of several problems. `param` is a JSON pointer. */
export type Problem = { param: string; message: string }

export type ErrorFields = {
  /** JSON pointer of the offending field (D2.3). */
  param?: string | undefined
  /** All problems of the request, where it can have several; `param` and the message are those of the first. At most 20 are sent. */
  problems?: readonly Problem[]
  /** A code of an event where a flow's run has failed. */
  code?: ErrorCode | RunErrorCode
  /** The execution of a flow that failed or was refused; it is sent as `X-Trace-ID` (D6.5). */
  traceId?: string
  /** Replaces the status of the kind where D2 requires another one: 405, 408, 413, 415, 416, 431. */
  status?: number
  retryAfterSecs?: number
  cause?: unknown
}

/** A message quotes at most 200 characters of what it refuses (`quoted`); this is the limit of a message that quotes many things. */
const MAX_MESSAGE_CHARS = 1_000
const MAX_PARAM_CHARS = 200
/** The most problems that an error has. */
export const MAX_PROBLEMS = 20
/** The most characters of a problem's text: 200 quoted ones, and our own. */
const MAX_PROBLEM_CHARS = 450

/**
 * An expected failure. Its message is written for the caller and says what is wrong and what to do next. It never contains the
 * text of another error.
 */
export class AppError extends Error {
  readonly kind: ErrorKind
  readonly status: number
  readonly param: string | undefined
  readonly code: ErrorCode | RunErrorCode | undefined
  readonly problems: readonly Problem[] | undefined
  readonly traceId: string | undefined
  readonly retryAfterSecs: number | undefined

  constructor(kind: ErrorKind, message: string, fields: ErrorFields = {}) {
    super(truncate(message, MAX_MESSAGE_CHARS), { cause: fields.cause })
    this.name = 'AppError'
    this.kind = kind
    this.status = fields.status ?? STATUS[kind]
    this.param = fields.param === undefined ? undefined : truncate(fields.param, MAX_PARAM_CHARS)
    this.code = fields.code
    this.problems = fields.problems?.slice(0, MAX_PROBLEMS).map(boundedProblem)
    this.traceId = fields.traceId
    this.retryAfterSecs = fields.retryAfterSecs
  }
}

/** A problem as it is sent. */
export const boundedProblem = ({ param, message }: Problem): Problem => ({
  param: truncate(param, MAX_PARAM_CHARS),
  message: truncate(message, MAX_PROBLEM_CHARS),
})

export const invalidRequest = (message: string, fields?: ErrorFields) =>
  new AppError('invalid_request', message, fields)
export const notFound = (message: string) => new AppError('not_found', message)
export const conflict = (message: string) => new AppError('conflict', message)
export const tooMany = (message: string, retryAfterSecs: number) =>
  new AppError('rate_limit', message, { retryAfterSecs })

export type ErrorBody = {
  error: { type: string; message: string; param?: string; code?: string; problems?: readonly Problem[] }
}

/** The JSON envelope (api.md "Errors"). */
export function toErrorBody({ kind, message, param, code, problems }: AppError): ErrorBody {
  return {
    error: {
      type: `${kind}_error`,
      message,
      ...(param !== undefined && { param }),
      ...(code !== undefined && { code }),
      ...(problems && { problems }),
    },
  }
}

/** The problem of a body that its schema refuses. Throws `cause` when it is another error. */
export function problemOfBody(cause: unknown): Problem {
  if (!(cause instanceof AppError) || cause.status !== 400 || cause.param === undefined) throw cause
  return { param: cause.param, message: cause.message }
}

export const hasKind = (cause: unknown, kind: ErrorKind): cause is AppError =>
  cause instanceof AppError && cause.kind === kind

/** Converts any thrown value. One that is not an `AppError` is a bug: its message is replaced and the value kept as `cause`. */
export function toAppError(cause: unknown): AppError {
  return cause instanceof AppError ? cause : new AppError('internal', 'internal error', { cause })
}
