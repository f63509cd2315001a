import type { Schema } from './api.ts'

/** The class of every error of this package. */
export class AgentEngineError extends Error {
  override name = 'AgentEngineError'

  constructor(message: string, fields?: ErrorOptions & Record<string, unknown>) {
    super(message, fields)
    Object.assign(this, fields)
  }
}

type ErrorFields = Schema<'ErrorResponse'>['error']

/** The server refused a request. `status`, `type`, `code` and `param` are those of its answer. */
export class ApiError extends AgentEngineError {
  override name = 'ApiError'
  declare readonly status: number
  declare readonly type: string
  declare readonly code: string | undefined
  declare readonly param: string | undefined
  declare readonly problems: readonly { param: string; message: string }[]
  /** Names the request in the server's log. */
  declare readonly requestId: string | undefined
  /** After how many milliseconds the server accepts the request again. */
  declare readonly retryAfterMs: number | undefined
  /** Set when an earlier attempt got no answer, so that the server may already have carried out the request. */
  declare mayBeDone: boolean

  constructor({ status, statusText, headers }: Response, body: string) {
    const answered: Partial<Schema<'ErrorResponse'>> | undefined = objectIn(body)
    const { message = `${status} ${body.slice(0, 200) || statusText}`, ...error }: Partial<ErrorFields> =
      answered?.error ?? {}
    const seconds = Number(headers.get('retry-after') ?? Number.NaN)
    super(message, {
      type: 'unknown',
      problems: [],
      ...error,
      status,
      requestId: headers.get('x-request-id') ?? undefined,
      retryAfterMs: seconds >= 0 ? seconds * 1000 : undefined,
    })
  }
}

/** Whether the server has refused a request with one of these statuses. */
export const isRefusal = (cause: unknown, ...statuses: number[]): cause is ApiError =>
  cause instanceof ApiError && statuses.includes(cause.status)

/** Parses a text as a JSON object, which every answer of the server is. `undefined` for another answer, such as a proxy's. */
export function objectIn(text: string): object | undefined {
  try {
    if (/^\s*{/.test(text)) return JSON.parse(text) as object
  } catch {
    // It is no JSON.
  }
  return undefined
}

/** There is no answer: the connection could not be made, broke, or fell silent, and further attempts were not safe or failed, too. */
export class ConnectionFailed extends AgentEngineError {
  override name = 'ConnectionFailed'
}

/** Throws the error for a broken connection. */
export function connectionFailed(cause: unknown): never {
  throw new ConnectionFailed('the connection failed', { cause })
}

/** Throws the error for an answer that does not come from an agent-engine, but from a proxy or another server. A repetition would not help. */
export function wrongAnswer(came: unknown): never {
  const shown = JSON.stringify(came ?? null).slice(0, 200)
  throw new ConnectionFailed(`the answer is ${shown}: check the url`, { retryAfterMs: Number.POSITIVE_INFINITY })
}

/** The run itself has failed. */
export class RunFailed extends AgentEngineError {
  override name = 'RunFailed'
  declare readonly code: Schema<'RunErrorCode'>
  /** The next thing to do. */
  declare readonly suggestion: string
  /** The same request may succeed later. */
  declare readonly retryable: boolean
  declare readonly runId: string | undefined

  constructor({ error, ...fields }: Omit<Schema<'ErrorData'>, 'detail'>, runId?: string) {
    super(error, { ...fields, runId })
  }
}

/** The server no longer knows the run: nobody read it for too long, or its record has expired. How it ended is unknown. */
export class RunLost extends AgentEngineError {
  override name = 'RunLost'
  declare readonly runId: string

  constructor(runId: string, cause?: unknown) {
    super(`the server no longer knows ${runId}`, { runId, cause })
  }
}
