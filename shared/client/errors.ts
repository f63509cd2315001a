import type { Schema } from './api.ts'

/** The class of every error of this package. */
export class AgentEngineError extends Error {
  override name = 'AgentEngineError'
}

/** The server refused a request. `status`, `type`, `code` and `param` are those of its answer. */
export class ApiError extends AgentEngineError {
  override name = 'ApiError'
  readonly status: number
  readonly type: string
  readonly code: string | undefined
  readonly param: string | undefined
  readonly problems: readonly { param: string; message: string }[]
  /** Names the request in the server's log. */
  readonly requestId: string | undefined
  /** When the server wants to be asked again. */
  readonly retryAfterMs: number | undefined

  constructor({ status, statusText, headers }: Response, body: string) {
    const { message, type = 'unknown', code, param, problems = [] } = errorOf(body)
    super(message ?? `${status} ${statusText} ${body.slice(0, 200)}`.trim())
    this.status = status
    this.type = type
    this.code = code
    this.param = param
    this.problems = problems
    this.requestId = headers.get('x-request-id') ?? undefined
    const seconds = Number(headers.get('retry-after') ?? Number.NaN)
    this.retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined
  }
}

function errorOf(body: string): Partial<Schema<'ErrorResponse'>['error']> {
  try {
    return (JSON.parse(body) as Partial<Schema<'ErrorResponse'>>).error ?? {}
  } catch {
    return {} // A proxy answered, not the server.
  }
}

/** There is no answer: the connection could not be made, broke, or fell silent, and further attempts were not safe or failed, too. */
export class ConnectionFailed extends AgentEngineError {
  override name = 'ConnectionFailed'
}

/** The run itself has failed. */
export class RunFailed extends AgentEngineError {
  override name = 'RunFailed'
  readonly code: Schema<'RunErrorCode'>
  /** The next thing to do. */
  readonly suggestion: string
  /** The same request may succeed later. */
  readonly retryable: boolean
  readonly runId: string | undefined

  constructor({ error, code, suggestion, retryable }: Omit<Schema<'ErrorData'>, 'detail'>, runId: string | undefined) {
    super(error)
    this.code = code
    this.suggestion = suggestion
    this.retryable = retryable
    this.runId = runId
  }
}

/** The server knows the run no more: nobody read it for too long, or its record has expired. How it ended is unknown. */
export class RunLost extends AgentEngineError {
  override name = 'RunLost'
  readonly runId: string

  constructor(runId: string, cause: unknown) {
    super(`the server does not know ${runId} any more`, { cause })
    this.runId = runId
  }
}
