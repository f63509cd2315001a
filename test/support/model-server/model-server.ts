import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { useOpened } from '../fixture.ts'
import { checkHistory } from './check-history.ts'
import { checkRequest } from './check-request.ts'
import { Connection } from './connection.ts'
import { sendAnswer, sendError } from './exchange.ts'
import type { HistoryEntry } from './history.ts'
import { listModels } from './model-list.ts'
import { answerOllama, type OllamaFacts } from './ollama-facts.ts'
import { type Received, type Route, read, routeOf } from './received.ts'
import type { Answer, Failure, Refusal } from './script.ts'
import type { Call, Format } from './wire.ts'

export type { Received } from './received.ts'
export type { Answer } from './script.ts'

export type Fallback = (request: Received, index: number) => Answer | Promise<Answer>

export type ModelServerOptions = {
  /** Default: any free port. */
  port?: number
  /** False for a server that runs for a long time: `requests` stays empty. */
  record?: boolean
}

/** A scripted model provider that speaks the real wire formats of OpenAI, Anthropic and Google. */
export class ModelServer {
  /** Every request, in order. */
  readonly requests: Received[] = []
  /** The errors with which this server refused requests that are invalid in their format. */
  readonly refusals: Failure[] = []
  /** The models that `GET …/models` lists, or the error with which it fails. */
  models: string[] | Refusal = ['test-model']
  /** The facts about its models that the server gives as Ollama does; without it these questions are 404. */
  ollama: OllamaFacts | undefined
  readonly #http = createServer((req, res) => void this.#handle(req, res))
  readonly #record: boolean
  readonly #connections = new Set<Connection>()
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

  /** Queues the answers of the next requests. */
  answer(...answers: Answer[]): void {
    this.#queue.push(...answers)
  }

  /** Sets the answer of requests for which none is queued (default: `ok`). `index` counts the requests to models from 0. */
  otherwise(fallback: Fallback): void {
    this.#fallback = fallback
  }

  /** Resolves with the earliest request that was not returned before. */
  nextRequest(): Promise<Received> {
    const request = this.requests[this.#handedOut++]
    if (request) return Promise.resolve(request)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Counts open sockets, including idle ones in the clients' pools. */
  openConnections(): number {
    return this.#sockets.size
  }

  /** Counts the requests whose answers are not complete. */
  openRequests(): number {
    return this.#connections.size
  }

  /** Closes every connection and refuses new ones, as a provider that is down, until `listen` is called. */
  async close(): Promise<void> {
    if (!this.#http.listening) return
    for (const connection of this.#connections) connection.endsHere()
    const closed = [this.#http, ...this.#sockets].map((each) => new Promise((resolve) => each.once('close', resolve)))
    this.#http.close()
    this.#http.closeAllConnections()
    await Promise.all(closed)
  }

  /** Accepts connections; after `close` at the same port. */
  async listen(port = this.#port): Promise<void> {
    this.#http.listen({ port, host: '127.0.0.1', backlog: 4096 })
    await once(this.#http, 'listening')
    this.#port = (this.#http.address() as AddressInfo).port
  }

  async #handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (this.ollama && (await answerOllama(req, res, this.ollama))) return
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
    const connection = new Connection(res)
    this.#connections.add(connection)
    connection.signal.addEventListener('abort', () => this.#connections.delete(connection))
    const { call, history, facts } = await read(req, route)
    const received: Received = {
      ...facts,
      closedByClient: connection.closedByClient,
      get closed() {
        return connection.closed
      },
    }
    this.#note(received)
    const { wire } = route
    const refusal = route.listsModels ? undefined : refusalOf(wire.format, call, history)
    if (refusal) this.refusals.push(refusal)
    const answer = route.listsModels ? listModels(wire.format, this.models) : (refusal ?? (await this.#next(received)))
    res.setHeader(wire.requestIdHeader, `req_${call.id}`)
    await sendAnswer(answer, { wire, call, streamed: facts.streamed, res, connection })
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

const refusalOf = (format: Format, { body, model }: Call, history: HistoryEntry[]) =>
  checkHistory(format, body, history) ?? checkRequest(format, body, model)

/** Starts a model server. */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const server = new ModelServer(options)
  await server.listen(options.port ?? 0)
  return server
}

/** A server for the tests of the enclosing `describe`, or with `perTest` for each of them. */
export function useModelServer({
  perTest = false,
  ...options
}: ModelServerOptions & { perTest?: boolean } = {}): ModelServer {
  return useOpened(() => startModelServer(options), { perTest })
}
