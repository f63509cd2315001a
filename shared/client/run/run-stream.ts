import type { RunEvent } from '../api.ts'
import { ApiError, ConnectionFailed, RunFailed, RunLost } from '../errors.ts'
import { type FollowedEvent, follow, type IsEnd, isPassing, LAST } from '../http/follow.ts'
import type { Keyed } from '../http/key.ts'
import type { OpenStream } from '../http/open-stream.ts'
import { at, type CallOptions, type Transport } from '../http/transport.ts'
import { linkedAbort } from '../http/wait.ts'
import type { PermissionAsk } from './permission-ask.ts'
import { RunAsks } from './run-asks.ts'
import { endOfRecord, isEndOfRun, type RunResult, resultOf } from './run-end.ts'

/** Answers a permission request, or leaves it to others. It runs beside the reading of the stream. */
export type OnPermission = (ask: PermissionAsk) => unknown

export type FollowOptions = Omit<CallOptions, 'timeoutMs'> & { onPermission?: OnPermission | undefined }

export type RunOptions = FollowOptions & Keyed

/** The request that starts a run. */
export type RunStart = { path: string; body: unknown; idempotencyKey: string | undefined }

type Source = {
  transport: Transport
  options: FollowOptions
  start?: RunStart
  /** Set for a run that was started before. */
  id?: string
  /** The number of the last event that the reader has. */
  after?: number | undefined
  /** The session of permission replies, where it is not the run's id. */
  sessionOf?: ((runId: string) => Promise<string>) | undefined
  isEnd?: IsEnd
}

type Listeners = { event: (event: RunEvent) => unknown; permission: OnPermission }

/** An event, and the one behind it as soon as a reader has asked for it. */
type Link = { event: RunEvent | undefined; next?: Promise<Link | undefined> | undefined }

type Connection = { events: AsyncGenerator<FollowedEvent, void, undefined>; abort: AbortController }

/** How long the end of an answer may take behind the last event. */
const CLOSE_MS = 1_000
/** A server that answers over connections that break, and sends no event for this long, is given up. Permission requests wait for less. */
const PATIENCE_MS = 30 * 60_000
const NO_ID = 'no X-Run-ID in the answer: another origin needs CORS_RESUME at the server'

/**
 * A run, as its events. It starts when it is read for the first time, and is read no faster than its reader reads. A connection that
 * breaks is resumed; each event comes once and in order. Several may read it at the same time, each from where it begins to.
 */
export class RunStream implements AsyncIterable<RunEvent> {
  readonly #source: Source
  readonly #listeners: { [Name in keyof Listeners]: Set<Listeners[Name]> } = { event: new Set(), permission: new Set() }
  readonly #asks: RunAsks
  readonly #texts: string[] = []
  /** The newest event that was read. */
  #newest: Link = { event: undefined }
  #id: string | undefined
  #isSent = false
  #end: RunEvent | undefined
  #failure: { cause: unknown } | undefined
  #readers = 0
  #connection: Connection | undefined

  constructor(source: Source) {
    this.#source = source
    this.#id = source.id
    this.#asks = new RunAsks(source.transport, source.sessionOf)
    if (source.options.onPermission) this.on('permission', source.options.onPermission)
  }

  /** The run's id, once the server has taken it. */
  get id(): string | undefined {
    return this.#id
  }

  /** The number of the newest event that was read. `engine.runs.resume(id, { after })` goes on behind it. */
  get lastEventId(): number {
    return this.#newest.event?.id ?? this.#source.after ?? 0
  }

  /** Starts the run. Resolves with its id once the server has taken it. */
  async started(): Promise<string> {
    if (this.#id === undefined) await this.#behind(this.#newest)
    if (this.#id !== undefined) return this.#id
    throw new ConnectionFailed(NO_ID)
  }

  /** The events from here on. The `error` of a run that fails comes, too, and then `RunFailed` is thrown. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent, void, undefined> {
    this.#readers++
    try {
      for (let link = this.#newest; ; ) {
        const next = await this.#behind(link)
        if (!next?.event) return
        if (link === this.#newest) this.#take(next, next.event)
        link = next
        yield next.event
      }
    } finally {
      // Without readers nothing is read. The server ends a run that nobody reads for a while.
      if (--this.#readers === 0) this.#disconnect()
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
    const events = this[Symbol.asyncIterator]()
    while (!(await events.next()).done);
    return resultOf(this.#id ?? '', this.#texts.join('\n\n'), this.#end)
  }

  /** Ends the run at the server, with its model call, tools and sub-agents. Its stream ends with the `error` `cancelled`. */
  async cancel(): Promise<void> {
    if (this.#id === undefined && !this.#newest.next) this.#failure = { cause: new RunFailed(NOT_STARTED, undefined) }
    else await this.#source.transport.json('DELETE', at('/runs/', await this.started()))
  }

  /** Calls the listener for each event, or permission request, that is read. Returns what stops that. */
  on<Name extends keyof Listeners>(name: Name, listener: Listeners[Name]): () => void {
    this.#listeners[name].add(listener)
    return () => void this.#listeners[name].delete(listener)
  }

  /** The event behind another one, read once for everyone who reads. */
  #behind(link: Link): Promise<Link | undefined> {
    return (link.next ??= this.#read())
  }

  async #read(): Promise<Link | undefined> {
    if (this.#failure) throw this.#failure.cause
    if (this.#end?.event === 'error') throw new RunFailed(this.#end.data, this.#id)
    if (this.#end) return undefined
    this.#connection ??= this.#connect()
    try {
      const { done, value } = await this.#connection.events.next()
      const event = done ? await this.#findEnd() : ({ ...value, id: Number(value.id) } as RunEvent)
      return { event }
    } catch (cause) {
      throw this.#fail(cause)
    }
  }

  #take(link: Link, event: RunEvent): void {
    this.#newest = link
    if (event.event === 'text') this.#texts.push(event.data.text)
    if (LAST.has(event.event)) this.#finish(event)
    const ask = this.#asks.take(event, this.#id ?? '')
    if (ask) for (const listener of this.#listeners.permission) this.#call(() => listener(ask))
    for (const listener of this.#listeners.event) this.#call(() => listener(event))
  }

  /** A listener runs beside the reading. One that throws ends it. */
  #call(listener: () => unknown): void {
    new Promise((resolve) => resolve(listener())).catch((cause: unknown) => this.#fail(cause))
  }

  /** Ends the reading. Returns the failure that came first. */
  #fail(cause: unknown): unknown {
    this.#failure ??= { cause }
    this.#asks.close()
    this.#connection?.abort.abort(cause)
    return this.#failure.cause
  }

  #finish(end: RunEvent): void {
    this.#end = end
    this.#asks.close()
    if (this.#connection) closeInTime(this.#connection)
    this.#connection = undefined
  }

  #disconnect(): void {
    this.#connection?.abort.abort()
    this.#connection?.events.return().catch(() => {}) // It has been told to end.
    this.#connection = undefined
    this.#newest.next = undefined
  }

  /** Reads the run over as many connections as it takes: it is started once, and then resumed behind its last event. */
  #connect(): Connection {
    const { transport, options, isEnd = isEndOfRun } = this.#source
    const abort = linkedAbort(options.signal)
    const call = { signal: abort.signal, traceparent: options.traceparent }
    const events = follow({
      open: (last) => (this.#id === undefined ? this.#start(call) : this.#resume(this.#id, last, call)),
      mayRetry: (cause) => isPassing(cause) && this.#id !== undefined,
      isEnd,
      after: String(this.lastEventId),
      signal: abort.signal,
      resumeMs: transport.resumeMs,
      patienceMs: PATIENCE_MS,
    })
    return { events, abort }
  }

  /** Without an id, the key finds a run that was started. */
  async #start(call: CallOptions): Promise<OpenStream> {
    const { transport, start } = this.#source
    if (!start || (this.#isSent && start.idempotencyKey === undefined)) throw new ConnectionFailed(NO_ID)
    this.#isSent = true
    const { path, ...request } = start
    const stream = await transport.startStream(path, { ...request, ...call })
    this.#id = stream.headers.get('x-run-id') ?? undefined
    return stream
  }

  async #resume(id: string, lastEventId: string | undefined, call: CallOptions): Promise<OpenStream> {
    try {
      return await this.#source.transport.openStream(`${at('/runs/', id)}/events`, { lastEventId, ...call })
    } catch (cause) {
      throw cause instanceof ApiError && cause.status === 404 ? new RunLost(id, cause) : cause
    }
  }

  /** The end of a run of which no event is left, from its record. */
  async #findEnd(): Promise<RunEvent> {
    return endOfRecord(await this.#source.transport.json('GET', at('/runs/', this.#id ?? '')), this.lastEventId)
  }
}

const NOT_STARTED = {
  error: 'cancelled before it was started',
  code: 'cancelled',
  suggestion: '',
  retryable: false,
} as const

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
