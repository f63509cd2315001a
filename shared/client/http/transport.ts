import { AgentEngineError, ApiError, ConnectionFailed } from '../errors.ts'
import { type OpenStream, openStream } from './open-stream.ts'
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
const EVENTS = 'text/event-stream'
const FIRST_PAUSE_MS = 250
const MOST_PAUSE_MS = 5_000

/** Sends requests: with the token, a deadline, and again where that is safe. */
export class Transport {
  readonly resumeMs: number
  readonly #options: EngineOptions
  readonly #base: string
  readonly #attempts: number
  readonly #requestMs: number
  readonly #stallMs: number

  constructor(options: EngineOptions) {
    this.#options = options
    this.#base = options.url.replace(/\/+$/, '')
    this.#attempts = options.retry?.attempts ?? 4
    this.resumeMs = options.retry?.resumeMs ?? 30_000
    this.#requestMs = options.timeouts?.requestMs ?? 30_000
    this.#stallMs = options.timeouts?.stallMs ?? 45_000
  }

  /** The JSON of the answer; `undefined` for an empty one. Throws `ApiError` and `ConnectionFailed`. */
  json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const request = { method, path, ...call }
    return this.#repeat(request, async () => {
      const deadline = new Deadline(call.signal)
      try {
        const text = await textOf(await this.#fetch(request, 'application/json', deadline), deadline)
        return (text === '' ? undefined : JSON.parse(text)) as T
      } finally {
        deadline.release()
      }
    })
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

  async #stream(request: Sent): Promise<OpenStream> {
    const deadline = new Deadline(request.signal)
    try {
      const response = await this.#fetch(request, EVENTS, deadline)
      refuseOther(response)
      deadline.pause()
      return openStream(response, {
        onWait: () => deadline.restart(this.#stallMs, 'byte of the stream'),
        onBytes: () => deadline.pause(),
        failureOf: (cause) => failureOf(cause, deadline),
        onEnd: () => deadline.release(),
      })
    } catch (cause) {
      deadline.release()
      throw cause
    }
  }

  async #repeat<T>(request: Sent, attempt: () => Promise<T>): Promise<T> {
    for (let n = 1; ; n++) {
      try {
        return await attempt()
      } catch (cause) {
        request.signal?.throwIfAborted()
        const pauseMs = n < this.#attempts ? pauseBeforeRepeat(cause, request, n) : undefined
        if (pauseMs === undefined) throw cause
        await sleep(pauseMs, request.signal)
      }
    }
  }

  /** Throws `ApiError` for an answer that refuses. */
  async #fetch(request: Sent, accept: string, deadline: Deadline): Promise<Response> {
    deadline.restart(request.timeoutMs ?? this.#requestMs, 'answer')
    const { token, headers = () => ({}) } = this.#options
    const headersWith = (bearer: string | undefined) => ({ ...headers(), ...headersOf(request, accept, bearer) })
    const isAsked = typeof token === 'function'
    const ask = async (refused?: string) => (isAsked ? unlessAborted(token(refused), deadline.signal) : token)
    const first = await ask()
    let response = await this.#send(request, headersWith(first), deadline)
    if (response.status === 401 && isAsked) {
      await response.body?.cancel()
      response = await this.#send(request, headersWith(await ask(first)), deadline)
    }
    if (!response.ok) throw new ApiError(response, await textOf(response, deadline))
    return response
  }

  async #send(
    { method, path, query, body }: Sent,
    headers: Record<string, string>,
    deadline: Deadline,
  ): Promise<Response> {
    const send = this.#options.fetch ?? fetch
    const init = { method, headers, signal: deadline.signal, ...(body !== undefined && { body: JSON.stringify(body) }) }
    try {
      return await send(this.#base + path + searchOf(query), init)
    } catch (cause) {
      throw failureOf(cause, deadline)
    }
  }
}

/** A path that ends with an id, or another text from outside. */
export const at = (path: string, id: string): string => path + encodeURIComponent(id)

function headersOf(call: Sent, accept: string, token: string | undefined): Record<string, string> {
  return {
    accept,
    ...(call.body !== undefined && { 'content-type': 'application/json' }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(call.idempotencyKey !== undefined && { 'idempotency-key': call.idempotencyKey }),
    ...(call.lastEventId !== undefined && { 'last-event-id': call.lastEventId }),
    ...(call.traceparent !== undefined && { traceparent: call.traceparent }),
  }
}

function searchOf(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`
}

async function textOf(response: Response, deadline: Deadline): Promise<string> {
  try {
    return await response.text()
  } catch (cause) {
    throw failureOf(cause, deadline)
  }
}

/** A stream that is none comes from something between us and the server, which would answer in the same way again. */
function refuseOther(response: Response): void {
  const type = response.headers.get('content-type') ?? ''
  if (response.status === 200 && !type.startsWith(EVENTS))
    throw new AgentEngineError(`the answer is no event stream but ${type || 'of no type'}`)
}

/** The cause of a broken connection: the caller, the deadline, or something between us and the server. */
const failureOf = (cause: unknown, { signal }: Deadline): unknown =>
  signal.aborted ? signal.reason : new ConnectionFailed('the connection failed', { cause })

/**
 * `undefined` where the request must not be sent again. 429 refuses before anything is done. After any other failure the server may have
 * done what it was asked for, so only requests that mean the same twice are repeated.
 */
function pauseBeforeRepeat(cause: unknown, { method, idempotencyKey }: Sent, failures: number): number | undefined {
  const isRead = method === 'GET' || method === 'DELETE'
  const isSafe = isRead || idempotencyKey !== undefined
  const pauseMs = backoffMs(failures, FIRST_PAUSE_MS, MOST_PAUSE_MS)
  if (cause instanceof ConnectionFailed) return isSafe ? pauseMs : undefined
  if (!(cause instanceof ApiError) || cause.code === 'budget_exhausted') return undefined
  const { status, retryAfterMs = pauseMs } = cause
  const isTemporary = status === 429 || (status === 503 && isSafe) || ((status === 502 || status === 504) && isRead)
  return isTemporary && retryAfterMs <= MOST_RETRY_AFTER_MS ? retryAfterMs : undefined
}
