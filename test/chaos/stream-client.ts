import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { type Closed, type Entry, type Frame, isGatewayMade, now } from './history.ts'
import { type SseFrame, SseReader } from './sse-reader.ts'

export type StreamRequest = {
  /** Of the gateway, with the base path. */
  url: string
  /** What the history calls the gateway. */
  gateway: string
  path: string
  /** POSTs it; without it, GET. */
  body?: unknown
  /** The last number that the client has already. */
  after?: number
  /** Whose run it starts, for the history. */
  customer?: string
  headers?: Record<string, string>
}

export type StreamDeps = {
  record(entry: Entry): void
  /** Told of a run at its first stream, so that whose it is can be recorded. */
  onRun?(run: string): void
}

export type Ended = {
  /** HTTP status; 0 where there was no answer. */
  status: number
  /** From the request to the headers. */
  openedInMs: number
  how: Closed['how']
  /** The terminal frame, if one came; `goesOn`: its gateway made it, and the run may be followed through another. */
  terminal: { event: string; code: string | undefined; t: number; goesOn: boolean } | undefined
}

const TERMINAL = new Set(['done', 'error', 'plan_queued'])
let streams = 0

/** One connection's view of a run, on a socket of its own; all that it sees goes into the history. */
export class StreamClient {
  /** What the history calls this connection. */
  readonly name = `stream ${++streams}`
  /** Resolves with the status, once the headers are there; 0 when there is no answer. */
  readonly opened: Promise<number>
  /** Resolves when the connection is over. Never rejects. */
  readonly ended: Promise<Ended>
  run = ''
  /** What a refusal said. */
  refusal = ''
  lastSeq: number
  frames = 0
  readonly #deps: StreamDeps
  readonly #onFrame = new Set<() => void>()
  readonly #startedAt = now()
  readonly #open = Promise.withResolvers<number>()
  readonly #end = Promise.withResolvers<Ended>()
  readonly #reader = new SseReader()
  readonly #request: ReturnType<typeof request>
  #status = 0
  #openedInMs = 0
  #terminal: Ended['terminal']
  #isRefused = false
  #isGarbled = false
  #isLeft = false
  #isOver = false

  constructor(what: StreamRequest, deps: StreamDeps) {
    this.#deps = deps
    this.opened = this.#open.promise
    this.ended = this.#end.promise
    this.lastSeq = what.after ?? 0
    const text = what.body === undefined ? undefined : JSON.stringify(what.body)
    this.#request = request(what.url + what.path, { agent: false, ...methodOf(what, text) })
    this.#request.once('response', (response) => this.#read(what, response))
    this.#request.on('error', (cause) => {
      this.#isRefused = 'code' in cause && cause.code === 'ECONNREFUSED'
      this.#over('reset')
    })
    this.#request.end(text)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Nobody listened: nothing of the request has reached anybody. */
  get isRefused(): boolean {
    return this.#isRefused
  }

  get socket(): Socket | null {
    return this.#request.socket
  }

  /** Resolves once so many frames have come, or the stream is over. */
  async atLeast(frames: number): Promise<void> {
    while (this.frames < frames && !this.#isOver) {
      const next = Promise.withResolvers<void>()
      this.#onFrame.add(next.resolve)
      await Promise.race([next.promise, this.ended])
      this.#onFrame.delete(next.resolve)
    }
  }

  /** Goes away, as a client does that wants no more. */
  leave(): void {
    this.#isLeft = true
    this.#request.destroy()
    this.#over('left')
  }

  #read({ gateway, after, customer }: StreamRequest, response: IncomingMessage): void {
    this.#status = response.statusCode ?? 0
    this.#openedInMs = now() - this.#startedAt
    const runId = response.headers['x-run-id']
    if (this.#status !== 200 || typeof runId !== 'string') {
      response.on('data', (bytes: Buffer) => {
        this.refusal += bytes.toString()
      })
      response.once('close', () => this.#over('ended'))
      return
    }
    this.run = runId
    this.#deps.onRun?.(runId)
    this.#record({ kind: 'opened', gateway, ...(after !== undefined && { after }), ...(customer && { customer }) })
    this.#open.resolve(this.#status)
    response.on('data', (bytes: Buffer) => this.#take(bytes))
    response.once('end', () => this.#over(response.complete ? 'ended' : 'reset'))
    response.once('error', () => this.#over('reset'))
    response.once('close', () => this.#over('reset'))
  }

  #take(bytes: Buffer): void {
    if (this.#isOver) return
    try {
      for (const frame of this.#reader.take(bytes)) this.#see(frame)
    } catch {
      this.#isGarbled = true // What it was is told by the checker: a stream that ends within a frame.
      this.#request.destroy()
      return this.#over('ended')
    }
    for (const wake of this.#onFrame) wake()
  }

  #see({ seq, event, data, digest }: SseFrame): void {
    const code = typeof data['code'] === 'string' ? data['code'] : undefined
    const isTerminal = TERMINAL.has(event)
    const repeats = isTerminal && seq === this.lastSeq
    this.frames++
    this.lastSeq = seq
    const marks = { ...(code && { code }), ...(isTerminal && { isTerminal }), ...(repeats && { repeats }) }
    const frame: Frame = { kind: 'frame', t: now(), run: this.run, stream: this.name, seq, event, digest, ...marks }
    this.#deps.record(frame)
    const goesOn = isGatewayMade(frame) && code !== 'worker_lost'
    if (isTerminal) this.#terminal = { event, code, t: frame.t, goesOn }
  }

  #over(how: Closed['how']): void {
    if (this.#isOver || (this.#isLeft && how !== 'left')) return
    this.#isOver = true
    if (this.run !== '')
      this.#record({ kind: 'closed', how, ...((this.#reader.isWithin || this.#isGarbled) && { isCut: true }) })
    this.#open.resolve(this.#status)
    this.#end.resolve({ status: this.#status, openedInMs: this.#openedInMs, how, terminal: this.#terminal })
  }

  #record(entry: OfStream): void {
    this.#deps.record({ ...entry, t: now(), run: this.run, stream: this.name })
  }
}

type Unnamed<E> = E extends unknown ? Omit<E, 't' | 'run' | 'stream'> : never
type OfStream = Unnamed<Extract<Entry, { kind: 'opened' | 'closed' }>>

function methodOf({ after, headers = {} }: StreamRequest, text: string | undefined) {
  const resume = after === undefined ? {} : { 'last-event-id': String(after) }
  if (text === undefined) return { method: 'GET', headers: { ...resume, ...headers } }
  const length = String(Buffer.byteLength(text))
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': length, ...resume, ...headers },
  }
}
