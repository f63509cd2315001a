import { ApiError, ConnectionFailed, connectionFailed, objectIn, wrongAnswer } from '../errors.ts'
import { EVENTS, type OpenStream, openStream } from './open-stream.ts'
import { backoffMs, linkedAbort, sleep, within } from './wait.ts'

export type EngineOptions = {
  /** The address of the API with its base path: `https://agents.example.com/api/v1`. */
  url: string
  /** Sent as the bearer token. A function is called before each request, and once more, with the refused token, after a 401. */
  token?: string | ((refused?: string) => string | undefined | Promise<string | undefined>) | undefined
  /** Further headers of each request, such as those of a trace. */
  headers?: (() => Record<string, string>) | undefined
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined
  /**
   * `attempts`: how often a repeatable request is sent, by default 4. `resumeMs`: how long a broken stream tries to reach a server, by
   * default 30,000.
   */
  retry?: { attempts?: number | undefined; resumeMs?: number | undefined } | undefined
  /** `requestMs`: how long an answer may take, by default 30,000. `stallMs`: how long a stream may be silent, by default 45,000. */
  timeouts?: { requestMs?: number | undefined; stallMs?: number | undefined } | undefined
}

export type CallOptions = {
  signal?: AbortSignal | undefined
  /** How long the answer may take, instead of `timeouts.requestMs`. */
  timeoutMs?: number | undefined
  /** The W3C trace context that the server's spans continue. */
  traceparent?: string | undefined
}

/** A query parameter that is undefined is not sent. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>

/** The parts of a request besides its method and path. */
export type Call = CallOptions & {
  query?: Query | undefined
  /** JSON, or the bytes of a `Blob`. */
  body?: unknown
  idempotencyKey?: string | undefined
  lastEventId?: string | number | undefined
  /** Set when it may be repeated without a key, because carrying it out twice changes nothing more. */
  isSafe?: boolean
  /** A field that every answer of an agent-engine to this request has: an answer without it comes from another server. */
  has?: string
}

type Sent = Call & { method: string; path: string; isStream?: boolean }

type Given<Values> = { [Name in keyof Values as undefined extends Values[Name] ? never : Name]: Values[Name] } & {
  [Name in keyof Values as undefined extends Values[Name] ? Name : never]?: Exclude<Values[Name], undefined>
}

/** The values that are not undefined, which JSON leaves out. */
export const given = <Values extends object>(values: Values): Given<Values> => JSON.parse(JSON.stringify(values))

/** If a server asks for a longer pause, the caller decides whether to wait. */
const MOST_RETRY_AFTER_MS = 60_000

/** Sends requests with the token and a deadline, and repeats them if that is safe. */
export class Transport {
  readonly #options: EngineOptions
  /** By how much this machine's clock is behind the server's. */
  #offsetMs = 0

  constructor(options: EngineOptions) {
    this.#options = options
  }

  /** The JSON of the answer; `undefined` for an empty one. Throws `ApiError` and `ConnectionFailed`. */
  json<T>(method: string, path: string, call?: Call): Promise<T> {
    return this.#repeat({ method, path, ...call })
  }

  /** Opens a stream of events. With GET the attempts are repeated for `retry.resumeMs`. */
  openStream(method: 'GET' | 'POST', path: string, call: Call): Promise<OpenStream> {
    return this.#repeat({ method, path, isStream: true, ...call })
  }

  /** Converts a time of the server to this machine's clock, by the difference that the newest answer has shown. */
  localTime(serverTime: string): Date {
    return new Date(Date.parse(serverTime) - this.#offsetMs)
  }

  async #repeat<T>(request: Sent): Promise<T> {
    const { retry: { attempts = 4, resumeMs = 30_000 } = {}, timeouts: { requestMs = 30_000 } = {} } = this.#options
    const { method, isStream, signal, timeoutMs = requestMs } = request
    const begun = performance.now()
    let mayBeDone = false
    for (let n = 1; ; n++) {
      const abort = linkedAbort(signal)
      try {
        const answer = await within(timeoutMs, this.#attempt(request, abort), abort)
        if (!isStream) abort.abort()
        return answer as T
      } catch (cause) {
        abort.abort()
        if (cause instanceof ApiError) cause.mayBeDone = mayBeDone
        mayBeDone ||= (cause as Partial<ApiError>).status !== 429
        const isOver = isStream && method === 'GET' ? performance.now() - begun > resumeMs : n >= attempts
        const pauseMs = pauseBeforeRepeat(cause, request, n)
        if (isOver || pauseMs > MOST_RETRY_AFTER_MS) throw cause
        await sleep(pauseMs, signal)
      }
    }
  }

  /** Sends a request once and reads the answer, or returns it as a stream. Throws `ApiError` for a refusal. */
  async #attempt(request: Sent, abort: AbortController): Promise<unknown> {
    const { token, timeouts: { stallMs = 45_000 } = {} } = this.#options
    const isAsked = typeof token === 'function'
    const first = isAsked ? await token() : token
    let response = await this.#send(request, first, abort.signal)
    if (isAsked && response.status === 401) {
      await response.body?.cancel()
      response = await this.#send(request, await token(first), abort.signal)
    }
    const offsetMs = Date.parse(response.headers.get('date') ?? '') - Date.now()
    // A small difference is ignored: the header has whole seconds, and the answer took some time to arrive.
    this.#offsetMs = Math.abs(offsetMs) > 1_500 ? offsetMs : 0
    if (response.ok && request.isStream) return openStream(response, abort, stallMs)
    const text = await response.text().catch(connectionFailed)
    if (!response.ok) throw new ApiError(response, text)
    const { has } = request
    const answer = objectIn(text)
    const isOurs = has ? answer && has in answer : answer || !text
    return isOurs ? answer : wrongAnswer(text)
  }

  #send(request: Sent, bearer: string | undefined, signal: AbortSignal): Promise<Response> {
    const { url, headers, fetch: send = fetch } = this.#options
    const { method, path, query = {}, body, traceparent } = request
    const search = String(new URLSearchParams(given(query) as Record<string, string>))
    const isBytes = body instanceof Blob
    const own = given({
      accept: request.isStream ? EVENTS : 'application/json',
      'content-type': body === undefined ? undefined : `application/${isBytes ? 'octet-stream' : 'json'}`,
      authorization: bearer && `Bearer ${bearer}`,
      'idempotency-key': request.idempotencyKey,
      'last-event-id': request.lastEventId,
      traceparent,
    })
    return send(url.replace(/\/+$/, '') + path + (search && `?${search}`), {
      method,
      headers: { ...headers?.(), ...(own as Record<string, string>) },
      body: isBytes ? body : JSON.stringify(body),
      // A request with a body follows no redirect: the body is meant for this server only.
      redirect: body === undefined ? 'follow' : 'error',
      signal,
    }).catch(connectionFailed)
  }
}

/**
 * Returns `Infinity` for a request that must not be sent again. 429 refuses before anything is done. After any other failure the server may have
 * carried out the request, so only requests that are safe to repeat are repeated.
 */
function pauseBeforeRepeat(cause: unknown, { method, isSafe, idempotencyKey }: Sent, failures: number): number {
  const { status = cause instanceof ConnectionFailed ? 503 : 0, retryAfterMs = backoffMs(failures) } =
    cause as Partial<ApiError>
  const mayRepeat = isSafe || idempotencyKey || method === 'GET' || method === 'DELETE'
  return status === 429 || (status >= 500 && mayRepeat) ? retryAfterMs : Number.POSITIVE_INFINITY
}
