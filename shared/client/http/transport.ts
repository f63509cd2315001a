import { ApiError, ConnectionFailed } from '../errors.ts'
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
  retry?: { attempts?: number; resumeMs?: number } | undefined
  /** `requestMs`: how long an answer may take, 30,000 unless given. `stallMs`: how long a stream may be silent, 45,000 unless given. */
  timeouts?: { requestMs?: number; stallMs?: number } | undefined
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

type Sent = Call & { method: string; path: string }

/** A longer pause that a server asks for is the caller's decision. */
const MOST_RETRY_AFTER_MS = 60_000
const FIRST_PAUSE_MS = 250

/** Sends requests: with the token, a deadline, and again where that is safe. */
export class Transport {
  readonly resumeMs: number
  readonly #options: EngineOptions
  /** How far this machine's clock is behind the server's. */
  #offsetMs = 0

  constructor(options: EngineOptions) {
    this.#options = options
    this.resumeMs = options.retry?.resumeMs ?? 30_000
  }

  /** The JSON of the answer; `undefined` for an empty one. Throws `ApiError` and `ConnectionFailed`. */
  json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const request = { method, path, ...call }
    return this.#repeat(request, () =>
      this.#attempt(request, 'application/json', async (response, deadline) => {
        const text = await response.text().catch(deadline.fail)
        deadline.release()
        return (text === '' ? undefined : JSON.parse(text)) as T
      }),
    )
  }

  /** A stream of events that has begun, which was asked for with POST, as often as that is safe. */
  startStream(path: string, call: Call): Promise<OpenStream> {
    const request = { method: 'POST', path, ...call }
    return this.#repeat(request, () => this.#stream(request))
  }

  /** A stream of events that has begun, after one attempt. */
  openStream(path: string, call: Call): Promise<OpenStream> {
    return this.#stream({ method: 'GET', path, ...call })
  }

  /** A time of the server, by this machine's clock, as far as the newest answer tells it. */
  localTime(serverTime: string): Date {
    return new Date(Date.parse(serverTime) - this.#offsetMs)
  }

  #stream(request: Sent): Promise<OpenStream> {
    const { stallMs = 45_000 } = this.#options.timeouts ?? {}
    return this.#attempt(request, EVENTS, (response, deadline) => openStream(response, deadline, stallMs))
  }

  async #repeat<T>(request: Sent, attempt: () => Promise<T>): Promise<T> {
    const { attempts = 4 } = this.#options.retry ?? {}
    for (let n = 1; ; n++) {
      try {
        return await attempt()
      } catch (cause) {
        request.signal?.throwIfAborted()
        const pauseMs = n < attempts ? pauseBeforeRepeat(cause, request, n) : undefined
        if (pauseMs === undefined) throw cause
        await sleep(pauseMs, request.signal)
      }
    }
  }

  /** Throws `ApiError` for an answer that refuses. `read` releases the deadline, at once or later. */
  async #attempt<T>(
    request: Sent,
    accept: string,
    read: (response: Response, deadline: Deadline) => T | Promise<T>,
  ): Promise<T> {
    const deadline = new Deadline(request.signal)
    try {
      const response = await this.#send(request, accept, deadline)
      this.#learnTime(response.headers.get('date'))
      if (!response.ok) throw new ApiError(response, await response.text().catch(deadline.fail))
      return await read(response, deadline)
    } catch (cause) {
      deadline.release()
      throw cause
    }
  }

  async #send({ method, path, query, body, ...request }: Sent, accept: string, deadline: Deadline): Promise<Response> {
    const { url, token, headers, fetch: send = fetch, timeouts } = this.#options
    const { signal } = deadline
    const address = url.replace(/\/+$/, '') + path + searchOf(query)
    deadline.restart(request.timeoutMs ?? timeouts?.requestMs ?? 30_000, 'answer')
    const sendWith = (bearer: string | undefined) => {
      const own = headersOf({ accept, body, bearer, ...request })
      return send(address, { method, headers: { ...headers?.(), ...own }, body: JSON.stringify(body), signal }).catch(
        deadline.fail,
      )
    }
    if (typeof token !== 'function') return sendWith(token)
    const first = await unlessAborted(token(), signal)
    const response = await sendWith(first)
    if (response.status !== 401) return response
    await response.body?.cancel()
    return sendWith(await unlessAborted(token(first), signal))
  }

  /** The header has whole seconds, and the answer was on its way: a small difference is none. */
  #learnTime(date: string | null): void {
    const offsetMs = Date.parse(date ?? '') - Date.now()
    if (!Number.isNaN(offsetMs)) this.#offsetMs = Math.abs(offsetMs) > 1_500 ? offsetMs : 0
  }
}

/** A path that ends with an id, or another text from outside. */
export const at = (path: string, id: string): string => path + encodeURIComponent(id)

type OwnHeaders = Omit<Call, 'query'> & { accept: string; bearer: string | undefined }

const headersOf = ({ accept, body, bearer, idempotencyKey, lastEventId, traceparent }: OwnHeaders) =>
  given({
    accept,
    'content-type': body === undefined ? undefined : 'application/json',
    authorization: bearer === undefined ? undefined : `Bearer ${bearer}`,
    'idempotency-key': idempotencyKey,
    'last-event-id': lastEventId,
    traceparent,
  })

function searchOf(query: Query = {}): string {
  const search = String(new URLSearchParams(given(query)))
  return search && `?${search}`
}

/** The values that are not undefined, as texts. */
const given = (values: Query): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )

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
