/**
 * What went wrong with a request, as the caller may know it. The kind decides the HTTP status and the wire type
 * (api.md "Errors", D2.3); nobody decides on message text.
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

export type ErrorFields = {
  /** JSON pointer of the offending field (D2.3). */
  param?: string
  code?: string
  /** Replaces the kind's status where D2 asks for another one: 405, 413, 415. */
  status?: number
  retryAfterSecs?: number
  cause?: unknown
}

/** An expected refusal. Its message is written for the caller: what is wrong and what to do next, never a foreign error's text. */
export class AppError extends Error {
  readonly kind: ErrorKind
  readonly status: number
  readonly param: string | undefined
  readonly code: string | undefined
  readonly retryAfterSecs: number | undefined

  constructor(kind: ErrorKind, message: string, fields: ErrorFields = {}) {
    super(message, { cause: fields.cause })
    this.name = 'AppError'
    this.kind = kind
    this.status = fields.status ?? STATUS[kind]
    this.param = fields.param
    this.code = fields.code
    this.retryAfterSecs = fields.retryAfterSecs
  }
}

export const invalidRequest = (message: string, fields?: ErrorFields) =>
  new AppError('invalid_request', message, fields)
export const notFound = (message: string) => new AppError('not_found', message)
export const conflict = (message: string) => new AppError('conflict', message)
export const tooMany = (message: string, retryAfterSecs: number) =>
  new AppError('rate_limit', message, { retryAfterSecs })

export type ErrorBody = { error: { type: string; message: string; param?: string; code?: string } }

/** The JSON envelope (api.md "Errors"). */
export function toErrorBody({ kind, message, param, code }: AppError): ErrorBody {
  return {
    error: {
      type: `${kind}_error`,
      message,
      ...(param !== undefined && { param }),
      ...(code !== undefined && { code }),
    },
  }
}

/** Any failure as an `AppError`; what is not one already is a bug and says no more than that. */
export function toAppError(cause: unknown): AppError {
  return cause instanceof AppError ? cause : new AppError('internal', 'internal error', { cause })
}
