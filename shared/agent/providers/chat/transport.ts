import { LRUCache } from 'lru-cache'
import type { Dispatcher } from 'undici'
import { added } from '../../../kernel/async/batch.ts'
import { LATER, PullIterator } from '../../../kernel/async/pull-iterator.ts'
import { type ConnectionOptions, openConnections } from '../connections.ts'
import type { Send, SendRequest, SendResponse } from '../port.ts'

/** How many parsed addresses are kept. */
const MAX_TARGETS = 1_000

type Target = { origin: string; path: string }

function toTarget(url: string): Target {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}

/** Sends over its own connection pool. It enforces only the limit for connecting; `CallWatch` enforces the others. */
export function createHttpSend(options: ConnectionOptions): Send {
  let pool: Dispatcher | undefined
  const targets = new LRUCache<string, Target>({ max: MAX_TARGETS, memoMethod: toTarget })
  return async (url, { method, headers, body, signal }) => {
    options.guard?.checkUrl(url)
    pool ??= openConnections(options)
    const exchange = new Exchange(signal)
    const response = exchange.head()
    const { origin, path } = targets.memo(url)
    if (!signal.aborted) pool.dispatch({ origin, path, method, ...contentOf(headers, body) }, exchange)
    return response
  }
}

type Content = Pick<Dispatcher.DispatchOptions, 'headers' | 'body'>

function contentOf(headers: SendRequest['headers'], body: SendRequest['body']): Content {
  if (typeof body === 'string') return { headers, body }
  const once = new BytesOnce(body)
  // The types of undici leave out that a body may be an iterable.
  return { headers: { ...headers, 'content-length': String(body.length) }, body: once as unknown as Uint8Array }
}

/**
 * The body of a request, which is read once. Undici keeps a body until the answer has ended; with this one it does not keep the bytes, which
 * hold a whole conversation.
 */
class BytesOnce implements AsyncIterableIterator<Uint8Array> {
  #bytes: Uint8Array | undefined

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    const value = this.#bytes
    this.#bytes = undefined
    return Promise.resolve(value ? { done: false, value } : { done: true, value })
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

/** A chunk is parsed as a whole, and its events wait in memory when the run waits for its reader. */
const CHUNK_BYTES = 16 * 1024

type Start = Parameters<Required<Dispatcher.DispatchHandler>['onResponseStart']>

/**
 * One request and the body of its response, in chunks of at most 16 KiB. While that many bytes are unread the connection is paused:
 * later bytes stay in its buffer and then in the kernel's. The streams of undici do the same at several times the CPU cost.
 */
class Exchange extends PullIterator<Uint8Array> implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal
  #head: Omit<PromiseWithResolvers<SendResponse>, 'promise'> | undefined
  #controller: Dispatcher.DispatchController | undefined
  #unread: Buffer[] = []
  #unreadBytes = 0
  #end: 'whole' | Error | undefined

  constructor(signal: AbortSignal) {
    super()
    this.#signal = signal
    signal.addEventListener('abort', this.#abort)
  }

  /** Resolves with the head of the response. Call it before the request is dispatched. */
  head(): Promise<SendResponse> {
    return new Promise((resolve, reject) => {
      this.#head = { resolve, reject }
      if (this.#signal.aborted) this.#abort()
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#end instanceof Error) controller.abort(this.#end)
  }

  onResponseStart(...[controller, status, headers]: Start): void {
    controller.rawHeaders = null // They are slices of the first read, which would be kept until the end.
    if (status < 200) return
    this.#head?.resolve({ status, headers, body: this })
    this.#head = undefined
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Buffer): void {
    this.#unread = added(this.#unread, bytes)
    this.#unreadBytes += bytes.length
    if (this.#unreadBytes >= CHUNK_BYTES) controller.pause()
    this.wake() // The reader takes all bytes of one read of the connection together.
  }

  onResponseEnd(): void {
    this.#endWith('whole')
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#endWith(error)
  }

  protected override pull(): Uint8Array | undefined | typeof LATER {
    if (this.#unreadBytes === 0) this.#controller?.resume()
    if (this.#unreadBytes > 0) return this.#take()
    if (this.#end === 'whole') return undefined
    if (this.#end) throw this.#end
    return LATER
  }

  /** Closes the connection, unless the body was read to its end. */
  protected override stop(): void {
    if (this.#end !== 'whole') this.#abort()
  }

  #take(): Uint8Array {
    const bytes = this.#unread.length === 1 && this.#unread[0] ? this.#unread[0] : Buffer.concat(this.#unread)
    this.#unreadBytes = Math.max(0, bytes.length - CHUNK_BYTES)
    this.#unread = this.#unreadBytes > 0 ? [bytes.subarray(CHUNK_BYTES)] : []
    return this.#unreadBytes > 0 ? bytes.subarray(0, CHUNK_BYTES) : bytes
  }

  readonly #abort = (): void => {
    const closed = new ConnectionClosed()
    this.#endWith(closed)
    this.#controller?.abort(closed)
  }

  #endWith(end: 'whole' | Error): void {
    this.#end ??= end
    this.#signal.removeEventListener('abort', this.#abort)
    if (end instanceof Error) this.#head?.reject(end)
    this.#head = undefined
    this.wake()
  }
}

class ConnectionClosed extends Error {
  readonly code = 'ECONNRESET'
}
