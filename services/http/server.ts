import {
  createServer as createHttpServer,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type AppError, invalidRequest, toErrorBody } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'

export type ServerLimits = {
  headersTimeoutMs: number
  /** For a whole request; the body reader's own deadline comes first and answers better. */
  requestTimeoutMs: number
  /** Longer than a load balancer's, so that the balancer closes first. */
  keepAliveMs: number
  checkIntervalMs: number
  maxRequestsPerSocket: number
  maxConnections: number
  maxHeaderBytes: number
  backlog: number
}

/** reliability.md L9; connections for 10,000 open streams (performance.md "Idle"). */
const LIMITS: ServerLimits = {
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 65_000,
  keepAliveMs: 65_000,
  checkIntervalMs: 500,
  maxRequestsPerSocket: 1_000,
  maxConnections: 16_384,
  maxHeaderBytes: 16 * 1024,
  backlog: 4_096,
}

export interface GatewayServer {
  listen(port: number, host: string): Promise<AddressInfo>
  /** Each answer from now on closes its connection, so that whoever sends more goes elsewhere. */
  drain(): void
  /** Takes nothing new, waits for the responses that are under way, then closes what is left of them. */
  close(deadlineMs: number): Promise<void>
}

/** The app on Node's HTTP server, with every limit said aloud and what Node refuses below the app refused in the app's own form. */
export function createServer(app: RequestListener, limits: Partial<ServerLimits> = {}): GatewayServer {
  return new HttpServer(app, { ...LIMITS, ...limits })
}

/** open -> draining (connections end with their answers) -> closing (nothing new; responses under way end, and their connections with them) -> closed. */
class HttpServer implements GatewayServer {
  readonly #app: RequestListener
  readonly #server: Server
  readonly #backlog: number
  readonly #running = new Set<ServerResponse>()
  readonly #requestsLeft: (socket: Duplex) => number
  #isDraining = false
  #isClosing = false

  constructor(app: RequestListener, limits: ServerLimits) {
    this.#app = app
    this.#backlog = limits.backlog
    this.#server = createHttpServer(optionsOf(limits), this.#handle)
    this.#requestsLeft = createRequestCount(limits.maxRequestsPerSocket)
    this.#server.maxConnections = limits.maxConnections
    this.#server.on('checkContinue', this.#handle) // The body reader says "continue" once it wants the body.
    this.#server.on('checkExpectation', this.#handle) // Others may be ignored (RFC 9110, 10.1.1).
    this.#server.on('connect', (_req, socket) => answer(socket, NO_PROXY))
    this.#server.on('clientError', this.#refuse)
  }

  listen(port: number, host: string): Promise<AddressInfo> {
    const { promise, resolve, reject } = Promise.withResolvers<AddressInfo>()
    this.#server.once('error', reject)
    this.#server.listen({ port, host, backlog: this.#backlog }, () => {
      this.#server.off('error', reject)
      this.#server.on('error', () => {}) // Of a connection that could not be taken, for want of descriptors: the next one may.
      resolve(this.#server.address() as AddressInfo)
    })
    return promise
  }

  drain(): void {
    this.#isDraining = true
    for (const res of this.#running) if (!res.headersSent) res.shouldKeepAlive = false
  }

  async close(deadlineMs: number): Promise<void> {
    this.drain()
    this.#isClosing = true
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    this.#closeUnused()
    const timer = setTimeout(() => this.#server.closeAllConnections(), deadlineMs)
    await promise
    clearTimeout(timer)
  }

  /** Node does not count a connection as idle that has sent nothing yet, or half a request: they go when no response is left. */
  #closeUnused(): void {
    if (this.#running.size > 0) this.#server.closeIdleConnections()
    else this.#server.closeAllConnections()
  }

  readonly #handle: RequestListener = (req, res) => {
    this.#running.add(res)
    res.once('close', () => {
      this.#running.delete(res)
      if (this.#isClosing) setImmediate(() => this.#closeUnused())
    })
    const left = this.#requestsLeft(req.socket)
    if (left < 0) return // Pipelined behind the last request: the connection closes without an answer, and nothing is done.
    if (left === 0 || this.#isDraining) res.shouldKeepAlive = false
    this.#app(req, res)
  }

  /** Answers what the parser refuses, or its clock. A response that has begun cannot become another: its connection goes. */
  readonly #refuse = (cause: NodeJS.ErrnoException, socket: Duplex): void => {
    if (socket.writableEnded) return // Answered before; what still comes is as malformed as what came.
    const current = [...this.#running].find((res) => res.socket === socket)
    const isRefusal = cause.code?.startsWith('HPE_') || cause.code?.startsWith('ERR_HTTP_')
    if (!isRefusal || !socket.writable || current?.headersSent) socket.destroy()
    else answer(socket, REFUSALS[cause.code ?? ''] ?? MALFORMED, current?.getHeader('X-Request-ID'))
  }
}

/** How many more requests a connection takes after this one. Node's own limit answers what is pipelined behind it with a bare 503. */
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
  requestTimeout: limits.requestTimeoutMs,
  keepAliveTimeout: limits.keepAliveMs,
  connectionsCheckingInterval: limits.checkIntervalMs,
  maxHeaderSize: limits.maxHeaderBytes,
  requireHostHeader: false, // The app asks for it, so that its absence is answered like any other mistake.
  noDelay: true,
  keepAlive: true, // Finds readers whose cable was cut.
  keepAliveInitialDelay: 30_000,
})

const NO_PROXY = invalidRequest('this server is no proxy; send requests to it, not through it')

/** How long a refused client may take to read why. */
const FAREWELL_MS = 1_000

const REFUSALS: Record<string, AppError> = {
  HPE_HEADER_OVERFLOW: invalidRequest('the headers are too large; send less', { status: 431 }),
  ERR_HTTP_REQUEST_TIMEOUT: invalidRequest('the request did not arrive in time; send it again', { status: 408 }),
}

const MALFORMED = invalidRequest('this is not valid HTTP')

type Header = ReturnType<ServerResponse['getHeader']>

/** Says no on the bare connection, and waits a little before closing it, so that the answer is read. */
function answer(socket: Duplex, error: AppError, requestId: Header = newId('req')): void {
  const body = JSON.stringify(toErrorBody(error))
  socket.on('error', () => socket.destroy())
  socket.end(
    [
      `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-ID: ${String(requestId)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  )
  const timer = setTimeout(() => socket.destroy(), FAREWELL_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}
