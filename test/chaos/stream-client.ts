import { type IncomingMessage, request } from 'node:http'
import { type Closed, type Entry, type Frame, isGatewayMade, now } from './history.ts'
import { type SseFrame, SseReader } from './sse-reader.ts'

export type StreamRequest = {
  /** The gateway's address with the base path. */
  url: string
  /** The gateway's name in the history. */
  gateway: string
  path: string
  /** Sent with POST; without a body the request is a GET. */
  body?: unknown
  /** The last number that the client has received. */
  after?: number
  /** The customer of the run, for the history. */
  customer?: string
  headers?: Readonly<Record<string, string>>
  /** Called with each frame. */
  onFrame?: (frame: SseFrame) => void
}

export type StreamDeps = {
  record(entry: Entry): void
  /** Called with the run's id when the headers arrive, so that the owner can be recorded. */
  onRun?(run: string): void
}

export type Ended = {
  /** HTTP status; 0 without an answer. */
  status: number
  /** Time from the request to the headers. */
  openedInMs: number
  how: Closed['how']
  /** The terminal frame, if there was one. `canContinue`: the gateway made it, and the run can be resumed through another. */
  terminal: { event: string; code: string | undefined; t: number; canContinue: boolean } | undefined
}

const TERMINAL = new Set(['done', 'error', 'plan_queued'])
let streams = 0

/** Reads a run's stream on its own connection and records everything in the history. */
export class StreamClient {
  /** The connection's name in the history. */
  readonly name = `stream ${++streams}`
  /** Resolves with the status when the headers arrive; 0 without an answer. */
  readonly opened: Promise<number>
  /** Resolves when the connection has ended. Never rejects. */
  readonly ended: Promise<Ended>
  run = ''
  /** The body of a refusal. */
  refusal = ''
  lastSeq: number
  frames = 0
  readonly #deps: StreamDeps
  readonly #onFrame: StreamRequest['onFrame']
  readonly #waiting = new Set<() => void>()
  readonly #startedAt = now()
  readonly #open = Promise.withResolvers<number>()
  readonly #end = Promise.withResolvers<Ended>()
  readonly #reader = new SseReader()
  readonly #request: ReturnType<typeof request>
  #status = 0
  #openedInMs = 0
  #terminal: Ended['terminal']
  #isRefused = false
  #isMalformed = false
  #hasLeft = false
  #hasEnded = false

  constructor(what: StreamRequest, deps: StreamDeps) {
    this.#deps = deps
    this.#onFrame = what.onFrame
    this.opened = this.#open.promise
    this.ended = this.#end.promise
    this.lastSeq = what.after ?? 0
    const text = what.body === undefined ? undefined : JSON.stringify(what.body)
    this.#request = request(what.url + what.path, { agent: false, ...methodOf(what, text) })
    this.#request.once('response', (response) => this.#read(what, response))
    this.#request.on('error', (cause) => {
      this.#isRefused = 'code' in cause && cause.code === 'ECONNREFUSED'
      this.#finish('reset')
    })
    this.#request.end(text)
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** The connection was refused, so no process received the request. */
  get isRefused(): boolean {
    return this.#isRefused
  }

  /** The frames are those of the run's record, which has no deltas (D20.3). */
  get isRecorded(): boolean {
    return this.#reader.comments.includes(': recorded without deltas')
  }

  /** Resolves when this many frames have arrived or the stream has ended. */
  async atLeast(frames: number): Promise<void> {
    while (this.frames < frames && !this.#hasEnded) {
      const next = Promise.withResolvers<void>()
      this.#waiting.add(next.resolve)
      await Promise.race([next.promise, this.ended])
      this.#waiting.delete(next.resolve)
    }
  }

  /** Closes the connection. */
  leave(): void {
    this.#hasLeft = true
    this.#request.destroy()
    this.#finish('left')
  }

  #read({ gateway, after, customer }: StreamRequest, response: IncomingMessage): void {
    this.#status = response.statusCode ?? 0
    this.#openedInMs = now() - this.#startedAt
    const runId = response.headers['x-run-id']
    if (this.#status !== 200 || typeof runId !== 'string') {
      response.on('data', (bytes: Buffer) => {
        this.refusal += bytes.toString()
      })
      response.once('close', () => this.#finish('ended'))
      return
    }
    this.run = runId
    this.#deps.onRun?.(runId)
    this.#record({ kind: 'opened', gateway, ...(after !== undefined && { after }), ...(customer && { customer }) })
    this.#open.resolve(this.#status)
    response.on('data', (bytes: Buffer) => this.#parse(bytes))
    response.once('end', () => this.#finish(response.complete ? 'ended' : 'reset'))
    response.once('error', () => this.#finish('reset'))
    response.once('close', () => this.#finish('reset'))
  }

  #parse(bytes: Buffer): void {
    if (this.#hasEnded) return
    try {
      for (const frame of this.#reader.take(bytes)) {
        this.#recordFrame(frame)
        this.#onFrame?.(frame)
      }
    } catch {
      this.#isMalformed = true // Recorded as a stream that ends within a frame, which the checker reports.
      this.#request.destroy()
      return this.#finish('ended')
    }
    for (const wake of this.#waiting) wake()
  }

  #recordFrame({ seq, event, data, digest }: SseFrame): void {
    const code = typeof data['code'] === 'string' ? data['code'] : undefined
    const isTerminal = TERMINAL.has(event)
    const repeats = isTerminal && seq === this.lastSeq
    this.frames++
    this.lastSeq = seq
    const marks = { ...(code && { code }), ...(isTerminal && { isTerminal }), ...(repeats && { repeats }) }
    const frame: Frame = { kind: 'frame', t: now(), run: this.run, stream: this.name, seq, event, digest, ...marks }
    this.#deps.record(frame)
    const canContinue = isGatewayMade(frame) && code !== 'worker_lost'
    if (isTerminal) this.#terminal = { event, code, t: frame.t, canContinue }
  }

  #finish(how: Closed['how']): void {
    if (this.#hasEnded || (this.#hasLeft && how !== 'left')) return
    this.#hasEnded = true
    if (this.run !== '')
      this.#record({ kind: 'closed', how, ...((this.#reader.isIncomplete || this.#isMalformed) && { isCut: true }) })
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
