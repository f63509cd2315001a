import type { RunEvent, Schema } from '../api.ts'
import { ApiError, ConnectionFailed, RunFailed, RunLost } from '../errors.ts'
import { follow, isPassing } from '../http/follow.ts'
import type { OpenStream } from '../http/open-stream.ts'
import type { SseEvent } from '../http/sse.ts'
import type { Call, CallOptions, Transport } from '../http/transport.ts'
import { linkedAbort } from '../http/wait.ts'
import type { PermissionAsk } from './permission-ask.ts'
import { RunAsks } from './run-asks.ts'
import { createMeaning, endOfRecord, LAST, notStarted, type RunResult, resultOf } from './run-end.ts'

/** Answers a permission request, or leaves it to others. It runs beside the reading of the stream. */
export type OnPermission = (ask: PermissionAsk) => unknown

export type FollowOptions = Omit<CallOptions, 'timeoutMs'> & { onPermission?: OnPermission | undefined }

/** `idempotencyKey`: the same key starts one run. Made at random unless given; `null` sends none, and then the start is sent once. */
export type RunOptions = FollowOptions & { idempotencyKey?: string | null | undefined }

/** How long the end of an answer may take behind the last event. */
const CLOSE_MS = 1_000

/** Permission requests wait for less. */
const PATIENCE_MS = 30 * 60_000

const NO_ID = 'the answer has no X-Run-ID: a web page of another origin needs CORS_RESUME at the server'

type Source = {
  transport: Transport
  options: FollowOptions
  /** How the run is started, or its id. */
  start: Call | string
  /** The number of the last event that the reader has. */
  after?: number
  /** The session of permission replies, where it is not the run's id. */
  sessionId?: ((runId: string) => Promise<string>) | undefined
}

type Listeners = { event: (event: RunEvent) => unknown; permission: OnPermission }

/**
 * A run, as its events. It starts when it is read for the first time, and is read no faster than its reader reads. A connection that
 * breaks is resumed; each event comes once and in order. Several may read it at the same time, each from where it begins to.
 */
export class RunStream implements AsyncIterable<RunEvent> {
  readonly #source: Source
  readonly #listeners: { [Name in keyof Listeners]: Set<Listeners[Name]> } = { event: new Set(), permission: new Set() }
  /** The events that each reader has not taken yet. */
  readonly #queues = new Set<RunEvent[]>()
  readonly #asks: RunAsks
  readonly #texts: string[] = []
  #id: string | undefined
  #last: number
  #end: RunEvent | undefined
  #failure: { cause: unknown } | undefined
  #readers = 0
  #connection: Connection | undefined
  /** The next event, when somebody has asked for it. */
  #next: Promise<IteratorResult<SseEvent, void>> | undefined
  #pulling: Promise<boolean> | undefined
  #isSent = false

  constructor(source: Source) {
    this.#source = source
    this.#id = typeof source.start === 'string' ? source.start : undefined
    this.#last = source.after ?? 0
    this.#asks = new RunAsks(source.transport, source.sessionId)
    if (source.options.onPermission) this.on('permission', source.options.onPermission)
  }

  /** The run's id, once the server has taken it. */
  get id(): string | undefined {
    return this.#id
  }

  /** The number of the newest event that was read. `engine.runs.resume(id, { after })` goes on behind it. */
  get lastEventId(): number {
    return this.#last
  }

  /** Starts the run. Resolves with its id once the server has taken it. */
  async started(): Promise<string> {
    if (this.#id === undefined) await this.#peek()
    if (this.#id !== undefined) return this.#id
    throw new ConnectionFailed(
      'the answer has no X-Run-ID: a web page of another origin needs CORS_RESUME at the server',
    )
  }

  /** The events from here on. The `error` of a run that fails comes, too, and then `RunFailed` is thrown. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent, void, undefined> {
    const queue: RunEvent[] = []
    this.#queues.add(queue)
    this.#readers++
    try {
      for (;;) {
        const event = queue.shift()
        if (event) yield event
        else if (!(await this.#pull())) return
      }
    } finally {
      this.#queues.delete(queue)
      this.#leave()
    }
  }

  /** The answer's text as it comes, with a blank line between its blocks. */
  async *textStream(): AsyncGenerator<string, void, undefined> {
    let shown = ''
    let isFirst = true
    for await (const { event, data } of this) {
      if (event !== 'text_delta' && event !== 'text') continue
      // A recorded run has no increments, so the rest of a block comes with its whole text.
      const text = event === 'text_delta' ? data.text : data.text.slice(shown.length)
      if (text !== '') yield shown === '' && !isFirst ? `\n\n${text}` : text
      shown = event === 'text' ? '' : shown + text
      isFirst = false
    }
  }

  /** Reads the run to its end. Throws `RunFailed`, `RunLost`, `ApiError` and `ConnectionFailed`. */
  async result(): Promise<RunResult> {
    this.#readers++
    try {
      while (await this.#pull());
      return resultOf(this.#id ?? '', this.#texts.join('\n\n'), this.#end)
    } finally {
      this.#leave()
    }
  }

  /** Ends the run at the server, with its model call, tools and sub-agents. Its stream ends with the `error` `cancelled`. */
  async cancel(): Promise<void> {
    if (this.#id === undefined && !this.#next) this.#failure = { cause: notStarted() }
    else await this.#source.transport.json({ method: 'DELETE', path: `/runs/${await this.started()}` })
  }

  /** Calls the listener for each event, or permission request, that is read. Returns what stops that. */
  on<Name extends keyof Listeners>(name: Name, listener: Listeners[Name]): () => void {
    this.#listeners[name].add(listener)
    return () => void this.#listeners[name].delete(listener)
  }

  /** Reads one more event for everyone who reads. `false` at the end. */
  #pull(): Promise<boolean> {
    this.#pulling ??= this.#read().finally(() => {
      this.#pulling = undefined
    })
    return this.#pulling
  }

  async #read(): Promise<boolean> {
    if (this.#failure) throw this.#failure.cause
    if (this.#end?.event === 'error') throw new RunFailed(this.#end.data, this.#id)
    if (this.#end) return false
    const { done, value } = await this.#peek()
    this.#next = undefined
    if (done) this.#end = await this.#findEnd()
    else this.#take({ id: Number(value.id), event: value.event, data: JSON.parse(value.data) as unknown } as RunEvent)
    return true
  }

  async #peek(): Promise<IteratorResult<SseEvent, void>> {
    this.#connection ??= this.#connect()
    this.#next ??= this.#connection.events.next()
    try {
      return await this.#next
    } catch (cause) {
      this.#failure ??= { cause }
      this.#asks.close()
      throw this.#failure.cause
    }
  }

  #take(event: RunEvent): void {
    this.#last = event.id
    if (event.event === 'text') this.#texts.push(event.data.text)
    if (LAST.has(event.event)) this.#finish(event)
    const ask = this.#asks.take(event, this.#id ?? '')
    if (ask) for (const listener of this.#listeners.permission) this.#call(() => listener(ask))
    for (const listener of this.#listeners.event) this.#call(() => listener(event))
    for (const queue of this.#queues) queue.push(event)
  }

  /** A listener runs beside the reading. One that throws ends it. */
  #call(listener: () => unknown): void {
    const fail = (cause: unknown) => {
      this.#failure ??= { cause }
      this.#connection?.abort.abort(cause)
    }
    new Promise((resolve) => resolve(listener())).catch(fail)
  }

  #finish(end: RunEvent): void {
    this.#end = end
    this.#asks.close()
    if (this.#connection) closeInTime(this.#connection)
    this.#connection = undefined
  }

  /** Without readers nothing is read. The server ends a run that nobody reads for a while. */
  #leave(): void {
    this.#readers--
    if (this.#readers === 0) this.#disconnect()
  }

  #disconnect(): void {
    this.#connection?.abort.abort()
    this.#connection?.events.return().catch(() => {}) // It has been told to end.
    this.#connection = undefined
    this.#next = undefined
  }

  #connect(): Connection {
    const { transport, options } = this.#source
    const abort = linkedAbort(options.signal)
    const events = follow({
      open: (after) => this.#open(after, abort.signal),
      mayRetry: (cause) => isPassing(cause) && this.#id !== undefined,
      meaningOf: createMeaning(),
      after: String(this.#last),
      signal: abort.signal,
      resumeMs: transport.resumeMs,
      patienceMs: PATIENCE_MS,
    })
    return { events, abort }
  }

  async #open(after: string | undefined, signal: AbortSignal): Promise<OpenStream> {
    const { transport, options, start } = this.#source
    const call = { signal, traceparent: options.traceparent }
    const id = this.#id
    if (id === undefined) return this.#start({ ...(start as Call), ...call })
    try {
      return await transport.openStream({ method: 'GET', path: `/runs/${id}/events`, lastEventId: after, ...call })
    } catch (cause) {
      if (cause instanceof ApiError && cause.status === 404) throw new RunLost(id, cause)
      throw cause
    }
  }

  /** Without an id, the key finds a run that was started. */
  async #start(call: Call): Promise<OpenStream> {
    if (this.#isSent && call.idempotencyKey === undefined) throw new ConnectionFailed(NO_ID)
    this.#isSent = true
    const stream = await this.#source.transport.stream(call)
    this.#id = stream.headers.get('x-run-id') ?? undefined
    return stream
  }

  /** The end of a run of which no event is left, from its record. */
  async #findEnd(): Promise<RunEvent> {
    const run = await this.#source.transport.json<Schema<'Run'>>({ method: 'GET', path: `/runs/${this.#id}` })
    return endOfRecord(run, this.#last)
  }
}

type Connection = { events: AsyncGenerator<SseEvent, void, undefined>; abort: AbortController }

/** The server closes the stream by itself now. Reading that lets the connection be used again. */
function closeInTime({ events, abort }: Connection): void {
  const timer = setTimeout(() => abort.abort(), CLOSE_MS)
  events
    .next()
    .catch(() => {}) // All events are there.
    .finally(() => {
      clearTimeout(timer)
      abort.abort()
    })
}
