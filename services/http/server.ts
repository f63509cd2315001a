import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError, invalidRequest, toErrorBody } from '../../shared/kernel/errors.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { nodeHttp } from '../../shared/platform/net/node-http.ts'
import { LiveItems } from './live-items.ts'
import { createWriteLimit, type WriteLimits } from './write-deadline.ts'

export type ServerLimits = {
  headersTimeoutMs: number
  writes: WriteLimits
  /**
   * The deadline for a whole request, unless its handler has called `liftBodyDeadline`. The body reader has a shorter
   * deadline and a better answer.
   */
  requestTimeoutMs: number
  /** Longer than a load balancer's idle timeout, so that the balancer closes first and never sends into a closing connection. */
  keepAliveMs: number
  checkIntervalMs: number
  maxRequestsPerSocket: number
  maxConnections: number
  maxHeaderBytes: number
  backlog: number
}

/** Deadlines against clients that send or read slowly, and enough connections for 10,000 open streams. */
const LIMITS: ServerLimits = {
  headersTimeoutMs: 15_000,
  writes: { stallMs: 30_000, minBytesPerSec: 10 * 1024 },
  requestTimeoutMs: 65_000,
  keepAliveMs: 65_000,
  checkIntervalMs: 500,
  maxRequestsPerSocket: 1_000,
  maxConnections: 16_384,
  maxHeaderBytes: 16 * 1024,
  backlog: 4_096,
}

export interface HttpServer {
  listen(port: number, host: string): Promise<AddressInfo>
  /** Closes each connection after its next answer, so that clients connect to another gateway. */
  drain(): void
  /**
   * Accepts no connections. Responses that have begun may go on for `streamsMs`, then their connections close; requests without an answer,
   * such as uploads, have `answersMs`, then they get 503.
   */
  close(streamsMs: number, answersMs?: number): Promise<void>
}

/** The base URL of a listener. */
export const urlOf = ({ address, family, port }: AddressInfo): string =>
  `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`

/**
 * Runs an app on Node's HTTP server with explicit limits. Requests that Node refuses before the app get the JSON error envelope
 * too.
 */
export function createServer(app: RequestListener, limits: Partial<ServerLimits> = {}): HttpServer {
  return new NodeServer(app, { ...LIMITS, ...limits })
}

/**
 * open -> draining (each connection closes after its answer) -> closing (no new connections; open responses may end) -> closed.
 */
class NodeServer implements HttpServer {
  readonly #app: RequestListener
  readonly #server: Server
  readonly #backlog: number
  readonly #requestTimeoutMs: number
  readonly #limitWrites: (res: ServerResponse) => void
  readonly #running = new LiveItems<ServerResponse>()
  readonly #requestsLeft: (socket: Duplex) => number
  #isDraining = false
  #isClosing = false

  constructor(app: RequestListener, limits: ServerLimits) {
    this.#app = app
    this.#backlog = limits.backlog
    this.#requestTimeoutMs = limits.requestTimeoutMs
    this.#limitWrites = createWriteLimit(limits.writes)
    this.#server = nodeHttp.createServer(optionsOf(limits), this.#handle)
    this.#requestsLeft = createRequestCount(limits.maxRequestsPerSocket)
    this.#server.maxConnections = limits.maxConnections
    this.#server.on('checkContinue', this.#handle) // The body reader sends "100 Continue" when it is ready for the body.
    this.#server.on('checkExpectation', this.#handle) // Other expectations may be ignored (RFC 9110, 10.1.1).
    this.#server.on('connect', (_req, socket) => refuseOn(socket, NO_PROXY))
    this.#server.on('clientError', this.#refuse)
  }

  listen(port: number, host: string): Promise<AddressInfo> {
    const { promise, resolve, reject } = Promise.withResolvers<AddressInfo>()
    this.#server.once('error', reject)
    this.#server.listen({ port, host, backlog: this.#backlog }, () => {
      this.#server.off('error', reject)
      this.#server.on('error', () => {}) // A connection could not be accepted, for example for lack of file descriptors.
      resolve(this.#server.address() as AddressInfo)
    })
    return promise
  }

  drain(): void {
    this.#isDraining = true
    for (const res of this.#running) if (!res.headersSent) res.shouldKeepAlive = false
  }

  async close(streamsMs: number, answersMs = streamsMs): Promise<void> {
    this.drain()
    this.#isClosing = true
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    this.#closeUnused()
    const timers = [
      setTimeout(() => this.#cutBegun(), streamsMs),
      setTimeout(() => this.#refuseUnanswered(), Math.max(streamsMs, answersMs)),
    ]
    await promise
    for (const timer of timers) clearTimeout(timer)
  }

  #cutBegun(): void {
    for (const { headersSent, socket } of this.#running) if (headersSent) socket?.destroy()
  }

  #refuseUnanswered(): void {
    this.#cutBegun() // Includes responses that began in the meantime.
    for (const res of this.#running) if (res.socket) refuseOn(res.socket, STOPPING, res.getHeader('X-Request-ID'))
    setTimeout(() => this.#server.closeAllConnections(), CLOSE_GRACE_MS).unref()
  }

  /**
   * `closeIdleConnections` leaves out connections with no request or an incomplete one, so these are closed once no response is
   * open.
   */
  #closeUnused(): void {
    if (this.#running.size > 0) this.#server.closeIdleConnections()
    else this.#server.closeAllConnections()
  }

  readonly #handle: RequestListener = (req, res) => {
    const place = this.#running.add(res)
    res.on('close', () => {
      place.leave()
      if (this.#isClosing) setImmediate(() => this.#closeUnused())
    })
    const left = this.#requestsLeft(req.socket)
    if (left < 0) return // A request that was pipelined after the last allowed one is not handled; the connection closes.
    if (left === 0 || this.#isDraining) res.shouldKeepAlive = false
    if (hasBody(req)) this.#limitBody(req, res)
    this.#limitWrites(res)
    this.#app(req, res)
  }

  #limitBody(req: IncomingMessage, res: ServerResponse): void {
    const timer = setTimeout(() => {
      if (res.headersSent) req.socket.destroy()
      else refuseOn(req.socket, TOO_LATE, res.getHeader('X-Request-ID'))
    }, this.#requestTimeoutMs).unref()
    bodyDeadlines.set(req, timer)
    const clear = () => clearTimeout(timer)
    req.on('end', clear).on('close', clear)
  }

  /**
   * Answers requests that the HTTP parser refused or that timed out. When a response has already begun, it only closes the
   * connection.
   */
  readonly #refuse = (cause: NodeJS.ErrnoException, socket: Duplex): void => {
    if (socket.writableEnded) return // The connection already has its refusal; this is more of the same malformed input.
    const current = [...this.#running].find((res) => res.socket === socket)
    const isRefusal = cause.code?.startsWith('HPE_') || cause.code?.startsWith('ERR_HTTP_')
    if (!isRefusal || !socket.writable || current?.headersSent) socket.destroy()
    else refuseOn(socket, REFUSALS[cause.code ?? ''] ?? MALFORMED, current?.getHeader('X-Request-ID'))
  }
}

const bodyDeadlines = new WeakMap<IncomingMessage, NodeJS.Timeout>()

/** For a handler that limits the time of a request's body by itself, such as an upload's. */
export const liftBodyDeadline = (req: IncomingMessage): void => clearTimeout(bodyDeadlines.get(req))

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/**
 * Counts how many more requests a connection accepts. Node's own limit would answer pipelined requests with a 503 without
 * envelope.
 */
function createRequestCount(max: number): (socket: Duplex) => number {
  const counts = new WeakMap<Duplex, number>()
  return (socket) => {
    const count = (counts.get(socket) ?? 0) + 1
    counts.set(socket, count)
    return max - count
  }
}

const optionsOf = (limits: ServerLimits) => ({
  headersTimeout: limits.headersTimeoutMs,
  requestTimeout: 0, // Node has only one limit for all requests, but an upload takes longer than others.
  keepAliveTimeout: limits.keepAliveMs,
  connectionsCheckingInterval: limits.checkIntervalMs,
  maxHeaderSize: limits.maxHeaderBytes,
  requireHostHeader: false, // The app checks it and answers with the envelope.
  noDelay: true,
  keepAlive: true, // TCP keepalive detects clients whose network is gone.
  keepAliveInitialDelay: 30_000,
})

const NO_PROXY = invalidRequest('this server is not a proxy; send requests to it, not through it')

/** Time for a refused client to read the answer before the connection is destroyed. */
const CLOSE_GRACE_MS = 1_000

const STOPPING = new AppError('unavailable', 'this server stops; send the request again', { retryAfterSecs: 1 })

const TOO_LATE = invalidRequest('the request did not arrive in time; send it again', { status: 408 })

const REFUSALS: Record<string, AppError> = {
  HPE_HEADER_OVERFLOW: invalidRequest('the headers are too large; send less', { status: 431 }),
  ERR_HTTP_REQUEST_TIMEOUT: TOO_LATE,
}

const MALFORMED = invalidRequest('this is not valid HTTP')

type Header = ReturnType<ServerResponse['getHeader']>

/** Writes a refusal to the bare socket and closes it after a moment, so that the client can read the answer. */
function refuseOn(socket: Duplex, error: AppError, requestId: Header = newId('req')): void {
  const body = JSON.stringify(toErrorBody(error))
  socket.on('error', () => socket.destroy())
  socket.end(
    [
      `HTTP/1.1 ${error.status} ${nodeHttp.STATUS_CODES[error.status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-ID: ${String(requestId)}`,
      ...(error.retryAfterSecs === undefined ? [] : [`Retry-After: ${error.retryAfterSecs}`]),
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  )
  const timer = setTimeout(() => socket.destroy(), CLOSE_GRACE_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}
