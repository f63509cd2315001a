import type { RunEvent, Schema } from '../api.ts'
import { ConnectionFailed, isRefusal, RunFailed, RunLost, wrongAnswer } from '../errors.ts'
import { type EventId, follow, type IsEnd, LAST } from '../http/follow.ts'
import type { OpenStream } from '../http/open-stream.ts'
import { type Keyed, path, withKey } from '../http/request.ts'
import type { Call, CallOptions, Transport } from '../http/transport.ts'
import { linkedAbort, within } from '../http/wait.ts'
import { asSent } from './answer-schema.ts'
import { PendingAsks } from './pending-asks.ts'
import type { PermissionAsk } from './permission-ask.ts'
import { endedWith, endOfRecord, isEndOfRun, type RunResult, resultOf } from './run-end.ts'

/** Answers a permission request, or leaves it to others. The stream is read on meanwhile. */
export type OnPermission = (ask: PermissionAsk) => unknown

export type FollowOptions = Omit<CallOptions, 'timeoutMs'> & { onPermission?: OnPermission | undefined }

export type RunOptions = FollowOptions & Keyed

type RunOrigin = RunOptions & {
  transport: Transport
  /** The request that starts the run. */
  start?: { path: string; body: object }
  /** Set for a run that was started before. */
  id?: string
  isEnd?: IsEnd
  onStart?: ((runId: string | undefined) => void) | undefined
  /** The number of the last event that the reader has. */
  after?: number | undefined
  /** Returns the session for permission replies, if it is not the run's id. */
  sessionOf?(runId: string): string | undefined | Promise<string | undefined>
}

type Listeners = { event: (event: RunEvent) => unknown; permission: OnPermission }

/** An event, and the next one as soon as a reader has asked for it. */
type Link = { event: RunEvent; next?: Promise<Link | undefined> | undefined }

type Connection = { events: AsyncGenerator<RunEvent, void, undefined>; abort: AbortController }

/** How long the end of an answer may take after the last event. */
const CLOSE_MS = 1_000

/**
 * A run, as its events. It starts when it is read for the first time, and is read no faster than its readers read. A connection that
 * breaks is resumed; each event comes once and in order. Several readers may read it at the same time, each from the point at which it starts.
 */
export class RunStream<T = string> implements AsyncIterable<RunEvent> {
  readonly #origin: RunOrigin
  readonly #listeners: { [Name in keyof Listeners]: Set<Listeners[Name]> } = { event: new Set(), permission: new Set() }
  readonly #asks: PendingAsks
  /** The texts of each turn. */
  readonly #texts: string[][] = [[]]
  #id: string | undefined
  #start: (Call & { path: string }) | undefined
  /** The newest event that was read. Before the first one only its number is known. */
  #newest: Link
  #failure: { cause: unknown } | undefined
  #readers = 0
  #connection: Connection | undefined

  constructor(origin: RunOrigin) {
    const { start, id, after = 0, idempotencyKey, onPermission } = origin
    this.#origin = origin
    this.#asks = new PendingAsks(origin)
    this.#start = start && withKey({ ...start, body: asSent(start.body), idempotencyKey })
    this.#id = id
    this.#newest = { event: { id: after } as RunEvent }
    if (onPermission) this.on('permission', onPermission)
  }

  /** The run's id, once the server has taken it. */
  get id(): string | undefined {
    return this.#id
  }

  /** The number of the newest event that was read. `engine.runs.resume(id, { after })` continues after it. */
  get lastEventId(): number {
    return this.#newest.event.id
  }

  /** Starts the run. Resolves with its id once the server has taken it. */
  async started(): Promise<string> {
    if (!this.#id) await this.#behind(this.#newest)
    return this.#knownId
  }

  /** The events from here on. A failed run yields its `error` event, and then `RunFailed` is thrown. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent, void, undefined> {
    this.#readers++
    try {
      for (let link = this.#newest; ; ) {
        const next = await this.#behind(link)
        if (!next) return
        if (link === this.#newest) this.#take(next)
        link = next
        yield next.event
      }
    } finally {
      // Without readers nothing is read. The server ends a run that nobody reads for a while.
      if (--this.#readers === 0) {
        this.#connection?.abort.abort()
        this.#connection = undefined
        this.#newest.next = undefined
      }
    }
  }

  /** The answer's text while it arrives, with a blank line between its blocks. */
  async *textStream(): AsyncGenerator<string, void, undefined> {
    let shown = ''
    let gap = ''
    for await (const { event, data } of this) {
      // A turn that another server repeats begins with an empty text.
      if (event === 'turn_start') shown = ''
      const isWhole = event === 'text'
      if (event !== 'text_delta' && !isWhole) continue
      // A recorded run has no deltas, so the rest of a block comes with its whole text.
      const text = isWhole ? data.text.slice(shown.length) : data.text
      if (text) {
        yield shown ? text : gap + text
        gap = '\n\n'
      }
      shown = isWhole ? '' : shown + text
    }
  }

  /** Reads the run to its end. Throws `RunFailed`, `RunLost`, `ApiError` and `ConnectionFailed`. */
  async result(): Promise<RunResult<T>> {
    for await (const _ of this);
    return resultOf(this.#knownId, this.#texts.flat().join('\n\n'), this.#newest.event)
  }

  /** Ends the run at the server, with its model call, tools and sub-agents. Its stream ends with the `error` `cancelled`. */
  async cancel(): Promise<void> {
    const isStarted = this.#id ?? this.#newest.next
    if (!isStarted) return void this.#fail(new RunFailed(endedWith('cancelled')))
    await this.#origin.transport.json('DELETE', path`/runs/${await this.started()}`)
  }

  /** Answers a call of the caller's own tools. Throws `ApiError` 409 when it was answered, and 404 when it is too late. */
  async answer(toolUseId: string, body: Schema<'ToolCallAnswerRequest'>): Promise<void> {
    const call = { body, isSafe: true }
    await this.#origin.transport.json('POST', path`/runs/${await this.started()}/tool-calls/${toolUseId}`, call)
  }

  /** Calls the listener for each event, or permission request, that is read. Returns a function that stops that. */
  on<Name extends keyof Listeners>(name: Name, listener: Listeners[Name]): () => void {
    const listeners = this.#listeners[name]
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  get #knownId(): string {
    if (!this.#id) throw new ConnectionFailed('no X-Run-ID: CORS_RESUME')
    return this.#id
  }

  /** The event after another one; it is read once for all readers. */
  #behind(link: Link): Promise<Link | undefined> {
    return (link.next ??= this.#read())
  }

  async #read(): Promise<Link | undefined> {
    if (this.#failure) throw this.#failure.cause
    if (LAST.includes(this.#newest.event.event)) return undefined
    this.#connection ??= this.#connect()
    try {
      const { done, value } = await this.#connection.events.next()
      if (!done) return { event: value }
      // The events are no longer kept; the record of the run says how it has ended.
      const record = await this.#origin.transport.json<Schema<'Run'>>('GET', path`/runs/${this.#knownId}`)
      return { event: endOfRecord(record, this.lastEventId) }
    } catch (cause) {
      throw this.#fail(cause)
    }
  }

  #take(link: Link): void {
    this.#newest = link
    const { event, data } = link.event
    if (event === 'text') this.#texts.at(-1)?.push(data.text ?? wrongAnswer(data))
    if (event === 'turn_start') {
      this.#texts.length = data.turn_number // A repeated turn replaces its earlier texts.
      this.#texts.push([])
    }
    if (LAST.includes(event)) {
      this.#asks.settle({ how: 'ended' })
      if (this.#connection) closeInTime(this.#connection)
      this.#connection = undefined
    }
    if (event === 'error') this.#failure ??= { cause: new RunFailed(data, this.#id) }
    const ask = this.#asks.take(link.event, this.#id ?? '')
    if (ask) this.#call(this.#listeners.permission, ask)
    this.#call(this.#listeners.event, link.event)
  }

  /** Listeners run while the stream is read on. An error that one throws ends the reading. */
  #call<Value>(listeners: Set<(value: Value) => unknown>, value: Value): void {
    for (const listener of listeners) (async () => listener(value))().catch((cause: unknown) => this.#fail(cause))
  }

  /** Ends the reading. Returns the failure that came first. */
  #fail(cause: unknown): unknown {
    this.#failure ??= { cause }
    this.#asks.settle({ how: 'ended' })
    this.#connection?.abort.abort(cause)
    return this.#failure.cause
  }

  /** Reads the run over as many connections as needed: it is started once, and then resumed after its last event. */
  #connect(): Connection {
    const { signal, traceparent, isEnd = isEndOfRun } = this.#origin
    const abort = linkedAbort(signal)
    const call = { signal: abort.signal, traceparent }
    const open = (last?: EventId) => this.#open(last, call)
    const followed = { open, isEnd, after: this.lastEventId, signal: abort.signal }
    return { abort, events: follow(followed) as AsyncGenerator<RunEvent> }
  }

  async #open(lastEventId: EventId | undefined, call: CallOptions): Promise<OpenStream> {
    const { transport } = this.#origin
    const start = this.#start
    if (!this.#id && start) {
      // Without an id in the answer, only a key finds the run again.
      if (!start.idempotencyKey) this.#start = undefined
      const stream = await transport.openStream('POST', start.path, { ...start, ...call })
      this.#id = stream.response.headers.get('x-run-id') ?? undefined
      this.#origin.onStart?.(this.#id)
      return stream
    }
    const id = this.#knownId
    try {
      return await transport.openStream('GET', path`/runs/${id}/events`, { lastEventId, ...call })
    } catch (cause) {
      throw isRefusal(cause, 404) ? new RunLost(id, cause) : cause
    }
  }
}

/** The server now closes the stream by itself. Reading to its end lets the connection be used again. */
function closeInTime({ events, abort }: Connection): void {
  const close = () => abort.abort()
  within(CLOSE_MS, events.next(), abort).then(close, close)
}
