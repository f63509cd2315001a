import type { RunEvent } from '../api.ts'
import { RunFailed } from '../errors.ts'
import { type FollowedEvent, follow, type IsEnd, isPassing, LAST } from '../http/follow.ts'
import type { Keyed } from '../http/key.ts'
import type { CallOptions } from '../http/transport.ts'
import { linkedAbort } from '../http/wait.ts'
import { PendingAsks } from './pending-asks.ts'
import type { PermissionAsk } from './permission-ask.ts'
import { endedWith, isEndOfRun, type RunResult, resultOf } from './run-end.ts'
import { type RunOrigin, RunSource } from './run-source.ts'

/** Answers a permission request, or leaves it to others. It runs beside the reading of the stream. */
export type OnPermission = (ask: PermissionAsk) => unknown

export type FollowOptions = Omit<CallOptions, 'timeoutMs'> & { onPermission?: OnPermission | undefined }

export type RunOptions = FollowOptions & Keyed

type Source = RunOrigin & {
  options: RunOptions
  /** The number of the last event that the reader has. */
  after?: number | undefined
  /** The session of permission replies, where it is not the run's id. */
  sessionOf?(runId: string): string | Promise<string>
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

/**
 * A run, as its events. It starts when it is read for the first time, and is read no faster than its reader reads. A connection that
 * breaks is resumed; each event comes once and in order. Several may read it at the same time, each from where it begins to.
 */
export class RunStream implements AsyncIterable<RunEvent> {
  readonly #options: Source
  readonly #source: RunSource
  readonly #listeners: { [Name in keyof Listeners]: Set<Listeners[Name]> } = { event: new Set(), permission: new Set() }
  readonly #asks = new PendingAsks()
  readonly #texts: string[] = []
  /** How many texts came before each turn. */
  readonly #before: number[] = []
  /** The newest event that was read. */
  #newest: Link = { event: undefined }
  #end: RunEvent | undefined
  #failure: { cause: unknown } | undefined
  #readers = 0
  #connection: Connection | undefined

  constructor(options: Source) {
    this.#options = options
    this.#source = new RunSource(options)
    if (options.options.onPermission) this.on('permission', options.options.onPermission)
  }

  /** The run's id, once the server has taken it. */
  get id(): string | undefined {
    return this.#source.id
  }

  /** The number of the newest event that was read. `engine.runs.resume(id, { after })` goes on behind it. */
  get lastEventId(): number {
    return this.#newest.event?.id ?? this.#options.after ?? 0
  }

  /** Starts the run. Resolves with its id once the server has taken it. */
  async started(): Promise<string> {
    if (this.id === undefined) await this.#behind(this.#newest)
    return this.#source.knownId
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
    for await (const each of this) {
      const { event, data } = each
      if (isRecovery(each)) shown = ''
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
    for await (const _ of this);
    return resultOf(this.#source.knownId, this.#texts.join('\n\n'), this.#end as RunEvent)
  }

  /** Ends the run at the server, with its model call, tools and sub-agents. Its stream ends with the `error` `cancelled`. */
  async cancel(): Promise<void> {
    const isStarted = this.id !== undefined || this.#newest.next !== undefined
    if (!isStarted) return void this.#fail(new RunFailed(endedWith('cancelled')))
    await this.started()
    await this.#source.cancel()
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
    if (this.#end) return undefined
    this.#connection ??= this.#connect()
    try {
      const { done, value } = await this.#connection.events.next()
      const event = done
        ? await this.#source.findEnd(this.lastEventId)
        : ({ ...value, id: Number(value.id) } as RunEvent)
      return { event }
    } catch (cause) {
      throw this.#fail(cause)
    }
  }

  #take(link: Link, event: RunEvent): void {
    this.#newest = link
    if (event.event === 'text') this.#texts.push(event.data.text)
    if (event.event === 'turn_start') this.#before[event.data.turn_number] = this.#texts.length
    if (isRecovery(event))
      this.#texts.splice(this.#before[Number(event.data.detail['turn_number'])] ?? this.#texts.length)
    if (LAST.has(event.event)) this.#finish(event)
    const { transport, sessionOf } = this.#options
    const ask = this.#asks.take(event, { transport, sessionOf, runId: this.id ?? '' })
    if (ask) this.#call(this.#listeners.permission, ask)
    this.#call(this.#listeners.event, event)
  }

  /** Listeners run beside the reading. One that throws ends it. */
  #call<T>(listeners: Set<(value: T) => unknown>, value: T): void {
    for (const listener of listeners) (async () => listener(value))().catch((cause: unknown) => this.#fail(cause))
  }

  /** Ends the reading. Returns the failure that came first. */
  #fail(cause: unknown): unknown {
    this.#failure ??= { cause }
    this.#asks.settle({ how: 'ended' })
    this.#connection?.abort.abort(cause)
    return this.#failure.cause
  }

  #finish(end: RunEvent): void {
    if (end.event === 'error') this.#failure ??= { cause: new RunFailed(end.data, this.id) }
    this.#end = end
    this.#asks.settle({ how: 'ended' })
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
    const { transport, options, isEnd = isEndOfRun } = this.#options
    const abort = linkedAbort(options.signal)
    const call = { signal: abort.signal, traceparent: options.traceparent }
    const events = follow({
      open: (last) => this.#source.open(last, call),
      mayRetry: (cause) => isPassing(cause) && this.id !== undefined,
      isEnd,
      after: String(this.lastEventId),
      signal: abort.signal,
      resumeMs: transport.limits.resumeMs,
      patienceMs: PATIENCE_MS,
    })
    return { events, abort }
  }
}

/** Another server goes on with the run. What has come of the turn that the warning names is void. */
const isRecovery = (event: RunEvent): event is Extract<RunEvent, { event: 'warning' }> =>
  event.event === 'warning' && event.data.code === 'run_recovered'

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
