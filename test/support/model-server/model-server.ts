import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { checkHistory } from './check-history.ts'
import { give, sendError } from './exchange.ts'
import { Life } from './life.ts'
import { listModels } from './model-list.ts'
import { type Received, type Route, read, routeOf } from './received.ts'
import type { Answer, Refusal } from './script.ts'

export type { Received } from './received.ts'
export type { Answer, Finish } from './script.ts'

export type Fallback = (request: Received, index: number) => Answer | Promise<Answer>

export type ModelServerOptions = {
  /** Default: any free one. */
  port?: number
  /** False for a server that runs for long: nothing is kept in `requests`. */
  record?: boolean
}

/** A model provider that does as it is told, on the real wire formats of OpenAI, Anthropic and Google. */
export class ModelServer {
  /** Every request, in order. */
  readonly requests: Received[] = []
  /** What `GET …/models` lists, or how it is refused. */
  models: string[] | Refusal = ['test-model']
  readonly #http = createServer((req, res) => void this.#handle(req, res))
  readonly #record: boolean
  readonly #lives = new Set<Life>()
  readonly #sockets = new Set<Socket>()
  readonly #queue: Answer[] = []
  readonly #waiting: ((request: Received) => void)[] = []
  #fallback: Fallback = () => 'ok'
  #port = 0
  #count = 0
  #handedOut = 0

  constructor({ record = true }: ModelServerOptions) {
    this.#record = record
    this.#http.keepAliveTimeout = 60_000
    this.#http.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** The base URL for OpenAI's and Anthropic's formats. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}/v1`
  }

  /** The base URL for Google's format. */
  get googleUrl(): string {
    return `http://127.0.0.1:${this.#port}/v1beta`
  }

  /** Queues what the next requests get, one each. */
  answer(...answers: Answer[]): void {
    this.#queue.push(...answers)
  }

  /** Decides what a request gets when nothing is queued (default: `ok`). `index` counts requests to models from 0. */
  otherwise(fallback: Fallback): void {
    this.#fallback = fallback
  }

  /** The earliest request that this has not returned before, awaited if it is still to come. */
  nextRequest(): Promise<Received> {
    const request = this.requests[this.#handedOut++]
    if (request) return Promise.resolve(request)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Sockets, those that clients keep for later included. */
  openConnections(): number {
    return this.#sockets.size
  }

  /** Requests that have not had their whole answer. */
  openRequests(): number {
    return this.#lives.size
  }

  /** Breaks off everything and refuses connections, as a provider that is down, until `listen`. */
  async close(): Promise<void> {
    if (!this.#http.listening) return
    for (const life of this.#lives) life.claimEnd()
    const closed = [this.#http, ...this.#sockets].map((each) => new Promise((resolve) => each.once('close', resolve)))
    this.#http.close()
    this.#http.closeAllConnections()
    await Promise.all(closed)
  }

  /** Accepts connections: again, after `close`, at the port it had. */
  async listen(port = this.#port): Promise<void> {
    this.#http.listen({ port, host: '127.0.0.1', backlog: 4096 })
    await once(this.#http, 'listening')
    this.#port = (this.#http.address() as AddressInfo).port
  }

  async #handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const route = routeOf(req)
    if (!route) return sendError(res, 404, `Invalid URL (${req.method} ${req.url})`)
    try {
      await this.#serve(req, res, route)
    } catch (cause) {
      if (!res.headersSent) sendError(res, cause instanceof SyntaxError ? 400 : 500, String(cause))
      else res.destroy(cause as Error)
    }
  }

  async #serve(req: IncomingMessage, res: ServerResponse, route: Route): Promise<void> {
    const life = new Life(res)
    this.#lives.add(life)
    life.signal.addEventListener('abort', () => this.#lives.delete(life))
    const { call, history, facts } = await read(req, route)
    const received: Received = {
      ...facts,
      closedByClient: life.closedByClient,
      get closed() {
        return life.closed
      },
    }
    this.#note(received)
    const { wire } = route
    const refusal = route.listsModels ? undefined : checkHistory(wire.format, call.body, history)
    const answer = route.listsModels ? listModels(wire.format, this.models) : (refusal ?? (await this.#next(received)))
    res.setHeader(wire.requestIdHeader, `req_${call.id}`)
    await give(answer, { wire, call, streamed: facts.streamed, res, life })
  }

  #note(received: Received): void {
    if (this.#record) this.requests.push(received)
    this.#waiting.shift()?.(received)
  }

  #next(received: Received): Answer | Promise<Answer> {
    const index = this.#count++
    return this.#queue.shift() ?? this.#fallback(received, index)
  }
}

/** A model server that listens. */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const server = new ModelServer(options)
  await server.listen(options.port ?? 0)
  return server
}
