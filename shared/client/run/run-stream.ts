import type { RunEvent, Schema } from '../api.ts'
import { ConnectionFailed, RunFailed } from '../errors.ts'
import type { Keyed } from '../http/key.ts'
import type { SseEvent } from '../http/sse.ts'
import { at, type CallOptions, type Transport } from '../http/transport.ts'
import { linkedAbort } from '../http/wait.ts'
import { FollowedRun, NO_ID, type RunStart } from './followed-run.ts'
import type { PermissionAsk } from './permission-ask.ts'
import { RunAsks } from './run-asks.ts'
import { createMeaning, endOfRecord, LAST, type RunResult, resultOf } from './run-end.ts'

/** Answers a permission request, or leaves it to others. It runs beside the reading of the stream. */
export type OnPermission = (ask: PermissionAsk) => unknown

export type FollowOptions = Omit<CallOptions, 'timeoutMs'> & { onPermission?: OnPermission | undefined }

export type RunOptions = FollowOptions & Keyed

/** How long the end of an answer may take behind the last event. */
const CLOSE_MS = 1_000

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

  constructor(source: Source) {
    this.#source = source
    this.#id = source.id
    this.#last = source.after ?? 0
    this.#asks = new RunAsks(source.transport, source.sessionOf)
    if (source.options.onPermission) this.on('permission', source.options.onPermission)
  }

  /** The run's id, once the server has taken it. */
  get id(): string | undefined {
    return (this.#id ??= this.#connection?.run.id)
  }

  /** The number of the newest event that was read. `engine.runs.resume(id, { after })` goes on behind it. */
  get lastEventId(): number {
    return this.#last
  }

  /** Starts the run. Resolves with its id once the server has taken it. */
  async started(): Promise<string> {
    if (this.id === undefined) await this.#peek()
    if (this.id !== undefined) return this.id
    throw new ConnectionFailed(NO_ID)
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
      return resultOf(this.id ?? '', this.#texts.join('\n\n'), this.#end)
    } finally {
      this.#leave()
    }
  }

  /** Ends the run at the server, with its model call, tools and sub-agents. Its stream ends with the `error` `cancelled`. */
  async cancel(): Promise<void> {
    if (this.id !== undefined || this.#next)
      await this.#source.transport.json('DELETE', at('/runs/', await this.started()))
    else this.#failure = { cause: new RunFailed(NOT_STARTED, undefined) }
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
    if (this.#end?.event === 'error') throw new RunFailed(this.#end.data, this.id)
    if (this.#end) return false
    const { done, value } = await this.#peek()
    this.#next = undefined
    if (done) this.#end = await this.#findEnd()
    else this.#take({ id: Number(value.id), event: value.event, data: JSON.parse(value.data) as unknown } as RunEvent)
    return true
  }

  async #peek(): Promise<IteratorResult<SseEvent, void>> {
    this.#connection ??= this.#connect()
    this.#next ??= this.#connection.run.events.next()
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
    const ask = this.#asks.take(event, this.id ?? '')
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
    this.#id = this.id
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
    this.#id = this.id
    this.#connection?.abort.abort()
    this.#connection?.run.events.return().catch(() => {}) // It has been told to end.
    this.#connection = undefined
    this.#next = undefined
  }

  #connect(): Connection {
    const { transport, options, start } = this.#source
    const abort = linkedAbort(options.signal)
    const call = { signal: abort.signal, traceparent: options.traceparent }
    const run = { id: this.#id, start, call, meaningOf: createMeaning(), after: String(this.#last) }
    return { run: new FollowedRun(transport, run), abort }
  }

  /** The end of a run of which no event is left, from its record. */
  async #findEnd(): Promise<RunEvent> {
    return endOfRecord(await this.#source.transport.json('GET', at('/runs/', this.id ?? '')), this.#last)
  }
}

type Connection = { run: FollowedRun; abort: AbortController }

const NOT_STARTED: Schema<'ErrorData'> = {
  error: 'cancelled before it was started',
  code: 'cancelled',
  detail: '',
  suggestion: '',
  retryable: false,
}

/** The server closes the stream by itself now. Reading that lets the connection be used again. */
function closeInTime({ run: { events }, abort }: Connection): void {
  const timer = setTimeout(() => abort.abort(), CLOSE_MS)
  events
    .next()
    .catch(() => {}) // All events are there.
    .finally(() => {
      clearTimeout(timer)
      abort.abort()
    })
}
