import type { IncomingMessage, RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { urlToHttpOptions } from 'node:url'
import { LRUCache } from 'lru-cache'
import { PullIterator } from '../../../kernel/async/pull-iterator.ts'
import { nodeHttp } from '../../../platform/net/node-http.ts'
import type { ConnectionGuard } from '../../../platform/net/port.ts'
import type { HttpsProxy, Send, SendResponse } from '../port.ts'

/** How long an idle connection stays in the pool; the server's own keep-alive timeout counts when it is shorter. */
const KEEP_ALIVE_MS = 30_000

/** Addresses that are kept parsed. */
const MAX_TARGETS = 1_000

const toTarget = (url: string): RequestOptions => urlToHttpOptions(new URL(url))

type SendOptions = { connectMs: number; guard?: ConnectionGuard; proxy?: HttpsProxy | undefined }

/** A connection reads at most 64 KiB more than this before its bytes are read here. */
const BUFFERED_BYTES = 16 * 1024

/** Sends over a connection pool of its own. Enforces the limit for connecting only; `CallWatch` enforces the others. */
export function createHttpSend({ connectMs, guard, proxy }: SendOptions): Send {
  const pool = {
    keepAlive: true,
    timeout: KEEP_ALIVE_MS,
    highWaterMark: BUFFERED_BYTES,
    ...(guard && { lookup: guard.lookup }),
  }
  const agents = {
    http: new nodeHttp.Agent(pool),
    https: new HttpsAgent({ ...pool, ...(proxy && { proxyEnv: proxyEnvOf(proxy) }) }),
  }
  const targets = new LRUCache<string, RequestOptions>({ max: MAX_TARGETS, memoMethod: toTarget })
  return async (url, { method, headers, body, signal }) => {
    guard?.checkUrl(url)
    const { promise, resolve, reject } = Promise.withResolvers<SendResponse>()
    const isTls = url.startsWith('https:')
    const target = targets.memo(url)
    const req = isTls
      ? httpsRequest({ ...target, method, headers, agent: agents.https })
      : nodeHttp.request({ ...target, method, headers, agent: agents.http })
    const abort = () => req.destroy()
    signal.addEventListener('abort', abort)
    req.on('socket', (socket) => {
      limitConnecting(socket, isTls, connectMs)
      if (guard && socket.connecting) socket.once('connect', () => checkPeer(socket, guard))
    })
    req.on('response', (res) => resolve(toResponse(res)))
    req.on('error', reject) // Not `once`: an error after the response's head is emitted here too, and read from the body.
    req.on('close', () => signal.removeEventListener('abort', abort))
    req.end(body)
    return promise
  }
}

const proxyEnvOf = ({ url, except = '' }: HttpsProxy) => ({ HTTPS_PROXY: url, NO_PROXY: except })

/** A socket from the pool is connected already and gets no timer. */
function limitConnecting(socket: Socket, isTls: boolean, connectMs: number): void {
  if (!socket.connecting) return
  const timer = setTimeout(() => socket.destroy(new ConnectTimeout()), connectMs)
  const clear = () => clearTimeout(timer)
  socket.once(isTls ? 'secureConnect' : 'connect', clear).once('close', clear)
}

/** The lookup has chosen an allowed address already; this is the last word on it, before a byte is sent. */
function checkPeer(socket: Socket, guard: ConnectionGuard): void {
  if (!guard.isAllowed(socket.remoteAddress ?? '')) socket.destroy(new ForbiddenAddress())
}

class ForbiddenAddress extends Error {
  readonly code = 'ECONNREFUSED'
}

class ConnectTimeout extends Error {
  readonly code = 'ETIMEDOUT'
}

/** A chunk is parsed as a whole, and its events wait in memory when the run waits for its reader. */
const CHUNK_BYTES = 16 * 1024

const NO_BYTES = Buffer.alloc(0)

const toResponse = (res: IncomingMessage): SendResponse => ({
  status: res.statusCode ?? 0,
  headers: res.headers,
  body: new ResponseBytes(res),
})

/**
 * Reads a response's body in chunks of what has arrived, at most 16 KiB each. When more than that is unread the response is paused: further bytes stay in Node's
 * buffer and then in the kernel's. Node's `readable` event, and its iterator still more, cost several times the CPU of `data` for each event of a model.
 */
class ResponseBytes extends PullIterator<Uint8Array> {
  readonly #res: IncomingMessage
  #unread: Buffer[] = []
  #unreadBytes = 0
  #wake: (() => void) | undefined

  constructor(res: IncomingMessage) {
    super()
    this.#res = res
    const wake = () => this.#wake?.()
    res.on('data', this.#add).on('end', wake).on('error', wake).on('close', wake)
  }

  protected override pull(): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    if (this.#unreadBytes > 0) return this.#take()
    if (this.#res.readableEnded) return undefined
    if (this.#res.destroyed) throw this.#res.errored ?? new ConnectionClosed()
    const arrived = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    return arrived.then(this.#pullAgain)
  }

  /** Closes the connection, unless the body was read to its end. */
  protected override stop(): void {
    if (!this.#res.readableEnded) this.#res.destroy()
  }

  readonly #pullAgain = () => this.pull()

  readonly #add = (chunk: Buffer): void => {
    this.#unread.push(chunk)
    this.#unreadBytes += chunk.length
    if (this.#unreadBytes > CHUNK_BYTES) this.#res.pause()
    this.#wake?.()
  }

  /** All that one read of the socket has brought is taken together, since the reader is woken behind it. */
  #take(): Uint8Array {
    const [first = NO_BYTES, ...others] = this.#unread
    const all = others.length === 0 ? first : Buffer.concat(this.#unread)
    const rest = all.subarray(CHUNK_BYTES)
    this.#unread = rest.length === 0 ? [] : [rest]
    this.#unreadBytes = rest.length
    if (rest.length === 0 && this.#res.isPaused()) this.#res.resume()
    return all.subarray(0, CHUNK_BYTES)
  }
}

class ConnectionClosed extends Error {
  readonly code = 'ECONNRESET'
}
