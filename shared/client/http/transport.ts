import { ApiError, ConnectionFailed } from '../errors.ts'
import { given } from './given.ts'
import { EVENTS, type OpenStream, openStream } from './open-stream.ts'
import { backoffMs, Deadline, sleep, unlessAborted } from './wait.ts'

export type EngineOptions = {
  /** The address of the API with its base path: `https://agents.example.com/api/v1`. */
  url: string
  /** Sent as the bearer token. A function is asked before each request, and once more, with the token that was refused, after a 401. */
  token?: string | ((refused?: string) => string | undefined | Promise<string | undefined>) | undefined
  /** Further headers of each request, such as those of a trace. */
  headers?: (() => Record<string, string>) | undefined
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined
  /**
   * `attempts`: how often a request that may be repeated is sent, 4 unless given. `resumeMs`: how long a stream that broke looks for a
   * server that answers, 30,000 unless given.
   */
  retry?: { attempts?: number | undefined; resumeMs?: number | undefined } | undefined
  /** `requestMs`: how long an answer may take, 30,000 unless given. `stallMs`: how long a stream may be silent, 45,000 unless given. */
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
  body?: unknown
  idempotencyKey?: string | undefined
  lastEventId?: string | undefined
}

type Sent = Call & { method: string; path: string; accept: string }

/** Reads a good answer, and releases the deadline, at once or later. */
type Read<T> = (response: Response, deadline: Deadline) => T | Promise<T>

const LIMITS = { attempts: 4, resumeMs: 30_000, requestMs: 30_000, stallMs: 45_000 }
/** A longer pause that a server asks for is the caller's decision. */
const MOST_RETRY_AFTER_MS = 60_000
const FIRST_PAUSE_MS = 250

/** Sends requests: with the token, a deadline, and again where that is safe. */
export class Transport {
  readonly limits: typeof LIMITS
  readonly #options: EngineOptions
  /** How far this machine's clock is behind the server's. */
  #offsetMs = 0

  constructor(options: EngineOptions) {
    this.#options = options
    this.limits = { ...LIMITS, ...given({ ...options.retry, ...options.timeouts }) }
  }

  /** The JSON of the answer; `undefined` for an empty one. Throws `ApiError` and `ConnectionFailed`. */
  json<T>(method: string, path: string, call?: Call): Promise<T> {
    return this.#repeat<T>({ method, path, accept: 'application/json', ...call }, async (response, deadline) => {
      const text = await response.text().catch(deadline.fail)
      deadline.release()
      return text === '' ? undefined : JSON.parse(text)
    })
  }

  /** A stream of events that has begun, which was asked for with POST, as often as that is safe. */
  startStream(path: string, call: Call): Promise<OpenStream> {
    return this.#repeat({ method: 'POST', path, accept: EVENTS, ...call }, this.#open)
  }

  /** A stream of events that has begun, after one attempt. */
  openStream(path: string, call: Call): Promise<OpenStream> {
    return this.#attempt({ method: 'GET', path, accept: EVENTS, ...call }, this.#open)
  }

  /** A time of the server, by this machine's clock, as far as the newest answer tells it. */
  localTime(serverTime: string): Date {
    return new Date(Date.parse(serverTime) - this.#offsetMs)
  }

  readonly #open: Read<OpenStream> = (response, deadline) => openStream(response, deadline, this.limits.stallMs)

  async #repeat<T>(request: Sent, read: Read<T>): Promise<T> {
    for (let n = 1; ; n++) {
      try {
        return await this.#attempt(request, read)
      } catch (cause) {
        request.signal?.throwIfAborted()
        const pauseMs = pauseBeforeRepeat(cause, request, n)
        if (pauseMs === undefined || n >= this.limits.attempts) throw cause
        await sleep(pauseMs, request.signal)
      }
    }
  }

  /** Throws `ApiError` for an answer that refuses. */
  async #attempt<T>(request: Sent, read: Read<T>): Promise<T> {
    const deadline = new Deadline(request.signal)
    try {
      const response = await this.#send(request, deadline)
      this.#learnTime(response.headers)
      if (!response.ok) throw new ApiError(response, await response.text().catch(deadline.fail))
      return await read(response, deadline)
    } catch (cause) {
      deadline.release()
      throw cause
    }
  }

  async #send(request: Sent, deadline: Deadline): Promise<Response> {
    const { url, token, headers, fetch: send = fetch } = this.#options
    const { method, path, query = {}, body, timeoutMs = this.limits.requestMs } = request
    const { signal } = deadline
    const search = String(new URLSearchParams(given(query) as Record<string, string>))
    const address = url.replace(/\/+$/, '') + path + (search && `?${search}`)
    deadline.restart(timeoutMs, 'answer')
    const sendWith = (bearer: string | undefined) =>
      send(address, {
        method,
        headers: { ...headers?.(), ...headersOf(request, bearer) },
        body: JSON.stringify(body),
        signal,
      }).catch(deadline.fail)
    if (typeof token !== 'function') return sendWith(token)
    const first = await unlessAborted(token(), signal)
    const response = await sendWith(first)
    if (response.status !== 401) return response
    await response.body?.cancel()
    return sendWith(await unlessAborted(token(first), signal))
  }

  /** The header has whole seconds, and the answer was on its way: a small difference is none. */
  #learnTime(headers: Headers): void {
    const offsetMs = Date.parse(headers.get('date') ?? '') - Date.now()
    if (!Number.isNaN(offsetMs)) this.#offsetMs = Math.abs(offsetMs) > 1_500 ? offsetMs : 0
  }
}

const headersOf = ({ accept, body, idempotencyKey, lastEventId, traceparent }: Sent, bearer: string | undefined) =>
  given({
    accept,
    'content-type': body === undefined ? undefined : 'application/json',
    authorization: bearer === undefined ? undefined : `Bearer ${bearer}`,
    'idempotency-key': idempotencyKey,
    'last-event-id': lastEventId,
    traceparent,
  })

/**
 * `undefined` where the request must not be sent again. 429 refuses before anything is done. After any other failure the server may have
 * done what it was asked for, so only requests that mean the same twice are repeated.
 */
function pauseBeforeRepeat(cause: unknown, { method, idempotencyKey }: Sent, failures: number): number | undefined {
  const isRead = method === 'GET' || method === 'DELETE'
  const isSafe = isRead || idempotencyKey !== undefined
  const pauseMs = backoffMs(failures, FIRST_PAUSE_MS)
  if (cause instanceof ConnectionFailed) return isSafe ? pauseMs : undefined
  if (!(cause instanceof ApiError) || cause.code === 'budget_exhausted') return undefined
  const { status, retryAfterMs = pauseMs } = cause
  const isTemporary = status === 429 || (status === 503 && isSafe) || ((status === 502 || status === 504) && isRead)
  return isTemporary && retryAfterMs <= MOST_RETRY_AFTER_MS ? retryAfterMs : undefined
}
