import { createApp } from '../../services/gateway/app.ts'
import { createServer, type HttpServer, type ServerLimits } from '../../services/http/server.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../shared/cluster/commands/runs.ts'
import type { FrameStream, Frames } from '../../shared/cluster/journal/frame-stream.ts'
import { renderFrame } from '../../shared/cluster/journal/frames.ts'
import type { AgentEvent, RunEvent } from '../../shared/kernel/events.ts'
import type { LogFields } from '../../shared/kernel/log.ts'
import { APP_DEFAULTS, appDeps, type FlatDeps } from '../support/app-defaults.ts'

export const RUN_ID = `run_${'0123456789abcdef'.repeat(2)}`
export const PERMISSION_ID = `perm_${'0123456789abcdef'.repeat(2)}`

export type Line = LogFields & { level: string; msg: string }

export type Gateway = {
  port: number
  /** Includes the base path. */
  url: string
  /** The log lines so far, in order. */
  lines: readonly Line[]
  /** Resolves with the first log line that matches, whether it has been written already or not. */
  line: (fits: (line: Line) => boolean) => Promise<Line>
  server: HttpServer
  get: (path: string, headers?: Record<string, string>) => Promise<Response>
  /** Sends `body` as JSON, a string as it is. */
  post: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Response>
}

type Options = Partial<FlatDeps> & { server?: Partial<ServerLimits>; methods?: Partial<Broker> }

/** Starts gateways on real sockets for one describe block, and closes them after each test, or with `perTest: false` after the last one. */
export function useGateways({ perTest = true } = {}): (options?: Options) => Promise<Gateway> {
  const open: HttpServer[] = []
  const close = () => Promise.all(open.splice(0).map((server) => server.close(0)))
  if (perTest) afterEach(close)
  else after(close)
  return async ({ server: limits, methods, ...deps } = {}) => {
    const { log, lines, line } = createLines()
    const server = createServer(createApp(appDeps({ broker: brokerOf(methods), log, ...deps })), limits)
    open.push(server)
    const { port } = await server.listen(0, '127.0.0.1')
    const url = `http://127.0.0.1:${port}${deps.basePath ?? APP_DEFAULTS.basePath}`
    return { port, url, lines, line, server, ...callsTo(url) }
  }
}

/** The routes of the app as `GET /path/:id`, read from its routers. */
export function routesOfApp(): string[] {
  const { router } = createApp(appDeps({ broker: brokerOf(), log: createLines().log }))
  return routesIn(router.stack as unknown as Layer[])
}

type Layer = { route?: { path: string; stack: { method?: string }[] }; handle: { stack?: Layer[] } }

const routesIn = (stack: readonly Layer[]): string[] =>
  stack.flatMap(({ route, handle }) => {
    if (!route) return routesIn(handle.stack ?? [])
    const methods = route.stack.flatMap(({ method }) => (method === undefined ? [] : [method.toUpperCase()]))
    return methods.map((method) => `${method} ${route.path}`)
  })

/** A broker with the given methods. Any other call is a mistake of the test and rejects. */
const brokerOf = (methods: Partial<Broker> = {}): Broker =>
  new Proxy(methods, {
    get: (all, name: keyof Broker) => all[name] ?? (() => Promise.reject(new Error(`not expected: ${name}`))),
  }) as Broker

function createLines() {
  const lines: Line[] = []
  const watchers = new Set<() => void>()
  const at =
    (level: string) =>
    (msg: string, fields: LogFields = {}) => {
      lines.push({ level, msg, ...fields })
      for (const look of watchers) look()
    }
  const line = (fits: (line: Line) => boolean) =>
    new Promise<Line>((resolve) => {
      const look = () => {
        const found = lines.find(fits)
        if (!found) return
        watchers.delete(look)
        resolve(found)
      }
      watchers.add(look)
      look()
    })
  return { lines, line, log: { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') } }
}

function callsTo(url: string) {
  return {
    get: (path: string, headers: Record<string, string> = {}) => fetch(url + path, { headers }),
    post: (path: string, body?: unknown, headers: Record<string, string> = {}) =>
      fetch(url + path, {
        method: 'POST',
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
  }
}

/** The JSON error envelope. */
export type Refusal = { error: { type: string; message: string; param?: string; code?: string } }

export const refusalOf = async (response: Response): Promise<Refusal['error']> =>
  ((await response.json()) as Refusal).error

/** The run that a client follows. */
export const LIVE_RUN: RunSummary = {
  run_id: RUN_ID,
  status: 'running',
  started_at: '2026-11-21T09:30:00.000Z',
  ended_at: null,
  event_count: 5,
}

/** The frames of a run with these events, as a broker returns them. */
export async function* framesOf(...events: RunEvent[]): AsyncGenerator<Frames, void, undefined> {
  for (const [i, event] of events.entries()) yield { text: renderFrame(i + 1, event), lastSeq: i + 1 }
}

export const delta = (text: string): AgentEvent => ({ type: 'text_delta', text })

export const DONE: AgentEvent = {
  type: 'done',
  total_input_tokens: 1,
  total_output_tokens: 1,
  total_tokens: 2,
  cost_usd: 0,
  turn_count: 1,
  stop_reason: 'end_turn',
}

/** A stream of frames that the test pushes. `left` resolves when the reader stops reading. */
export class Feed implements FrameStream, AsyncIterator<Frames> {
  readonly #waiting: Frames[] = []
  readonly #left = Promise.withResolvers<void>()
  #wake: (() => void) | undefined
  #failure: Error | undefined
  #isOver = false
  reads = 0

  get left(): Promise<void> {
    return this.#left.promise
  }

  push(text: string | Uint8Array, lastSeq: number, rest: Pick<Frames, 'pieces' | 'failure'> = {}): void {
    this.#waiting.push({ text, lastSeq, ...rest })
    this.#wake?.()
  }

  fail(failure: Error): void {
    this.#failure = failure
    this.#wake?.()
  }

  end(): void {
    this.#isOver = true
    this.#wake?.()
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    this.reads++
    while (this.#waiting.length === 0 && !this.#failure && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const value = this.#waiting.shift()
    if (value) return { done: false, value }
    if (this.#failure) throw this.#failure
    return { done: true, value: undefined }
  }

  return(): Promise<IteratorResult<Frames, undefined>> {
    this.#left.resolve()
    this.end()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
