import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import { callbackify } from 'node:util'
import { Agent, buildConnector, type Dispatcher, Headers, fetch as undiciFetch } from 'undici'
import { AppError, invalidRequest } from '../errors.ts'
import { isPublicAddress } from './public-address.ts'

export type Address = { address: string; family: number }

export type EgressOptions = {
  /** ALLOW_PRIVATE_URLS (D1.3): may private, loopback and link-local addresses be reached? */
  allowPrivate: boolean
  /** All addresses of a host name; the system's resolver unless given. */
  resolve?: (hostname: string) => Promise<Address[]>
  connectTimeoutMs?: number
  /** The longest silence before the headers, and between two pieces of the body. */
  idleTimeoutMs?: number
}

export type EgressRequest = {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD'
  headers?: Record<string, string>
  body?: string | Uint8Array | Readable
  signal: AbortSignal
  /** A longer body ends in an error while it is read; 64 MiB is the most. */
  maxBytes: number
  /** For the whole exchange, reading the body included. */
  timeoutMs: number
}

export type EgressResponse = {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** Read it to its end, leave the loop early, or `discard()` it: until then the connection is kept. */
  body: AsyncIterable<Uint8Array>
  discard(): void
}

/**
 * The only way out to addresses that tenants or the model supply (reliability.md rule 10, L19, L20). The address that is
 * connected to is the one that was checked, literals included; redirects are returned, never followed; the environment's
 * proxies are not used; a compressed answer is refused, so nothing can inflate.
 *
 * Failures are `AppError`s whose message never holds the address a name resolved to: `invalid_request` with code
 * `egress_refused`, else `upstream` with code `egress_unreachable`, `egress_timeout` or `egress_too_large`. When the
 * caller's signal is aborted, its reason is thrown.
 */
export type Egress = {
  request: (url: string, request: EgressRequest) => Promise<EgressResponse>
  /** The same door for packages that take a `fetch`. It wants an address, no `Request` and no `FormData`. */
  fetch: typeof globalThis.fetch
  close: () => Promise<void>
}

const MAX_URL_CHARS = 8_192
const MAX_HEADER_BYTES = 16 * 1024
const MAX_BODY_BYTES = 64 * 1024 * 1024

export function createEgress(options: EgressOptions): Egress {
  const { idleTimeoutMs = 60_000 } = options
  const dispatcher = new Agent({
    connect: guardedConnector(options),
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    maxResponseSize: MAX_BODY_BYTES,
  })
  return {
    request: async (url, request) => send(checkedUrl(url, options), request, dispatcher),
    fetch: guardedFetch(options, dispatcher),
    close: () => dispatcher.destroy(),
  }
}

/** What the form of a URL already forbids. */
function checkedUrl(url: string, { allowPrivate }: EgressOptions): URL {
  if (url.length > MAX_URL_CHARS) throw refused(`The address is longer than ${MAX_URL_CHARS} characters.`)
  const target = URL.parse(url)
  if (!target || (target.protocol !== 'http:' && target.protocol !== 'https:')) {
    throw refused('The address is not a valid http or https URL.')
  }
  if (target.username !== '' || target.password !== '')
    throw refused('The address may not hold a user name or password.')
  if (!allowPrivate && !isWebPort(target.port)) throw refused(`Port ${target.port} may not be reached.`)
  return target
}

/** Below 1024 other protocols live, to which an HTTP request must not be sent. */
const isWebPort = (port: string): boolean => port === '' || port === '80' || port === '443' || Number(port) >= 1_024

function guardedConnector(options: EgressOptions): buildConnector.connector {
  const { allowPrivate, connectTimeoutMs = 5_000 } = options
  const connect = buildConnector({ allowH2: false, timeout: connectTimeoutMs, lookup: guardedLookup(options) })
  return (target, callback) => {
    const literal = target.hostname.replace(/^\[|\]$/g, '')
    // No lookup happens for a literal (L19), so it is checked here.
    if (!allowPrivate && isIP(literal) !== 0 && !isPublicAddress(literal)) {
      queueMicrotask(() => callback(refusedHost(literal), null))
      return
    }
    connect(target, (...[error, socket]) => {
      if (error) callback(error, null)
      else if (allowPrivate || isPublicAddress(socket.remoteAddress ?? '')) callback(null, socket)
      else {
        socket.destroy()
        callback(refusedHost(literal), null)
      }
    })
  }
}

/** Resolves once and hands on only what may be connected to, so that a second answer never counts (DNS rebinding). */
function guardedLookup({ allowPrivate, resolve = systemResolve }: EgressOptions): LookupFunction {
  const openAddresses = async (hostname: string) => {
    const open = (await resolve(hostname)).filter(({ address }) => allowPrivate || isPublicAddress(address))
    if (open.length === 0) throw refusedHost(hostname)
    return open
  }
  const lookUp = callbackify(openAddresses)
  return (hostname, { all }, callback) =>
    lookUp(hostname, (cause, open) => {
      const [first] = open ?? []
      if (cause || !first) callback(cause, [])
      else if (all) callback(null, open)
      else callback(null, first.address, first.family)
    })
}

const systemResolve = (hostname: string): Promise<Address[]> => lookup(hostname, { all: true })

async function send(target: URL, request: EgressRequest, dispatcher: Dispatcher): Promise<EgressResponse> {
  const deadline = AbortSignal.timeout(request.timeoutMs)
  const limits = { host: target.host, signal: request.signal, deadline, maxBytes: request.maxBytes }
  try {
    const { statusCode, headers, body } = await dispatcher.request({
      origin: target.origin,
      path: `${target.pathname}${target.search}`,
      method: request.method ?? 'GET',
      headers: { ...request.headers, 'accept-encoding': 'identity' },
      body: request.body ?? null,
      signal: AbortSignal.any([request.signal, deadline]),
    })
    // A body that is destroyed before its end emits an error, which nobody needs to hear.
    const discard = () => void body.on('error', () => {}).destroy()
    if (isEncoded(headers['content-encoding'])) {
      discard()
      throw encoded(target.host)
    }
    return { status: statusCode, headers, body: bounded(body, limits), discard }
  } catch (cause) {
    throw failure(cause, limits)
  }
}

type Limits = { host: string; signal: AbortSignal; deadline: AbortSignal; maxBytes: number }

async function* bounded(body: AsyncIterable<Uint8Array>, limits: Limits): AsyncGenerator<Uint8Array> {
  let bytes = 0
  try {
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > limits.maxBytes) throw tooLarge(limits.host)
      yield chunk
    }
  } catch (cause) {
    throw failure(cause, limits)
  }
}

function guardedFetch(options: EgressOptions, dispatcher: Dispatcher): typeof globalThis.fetch {
  return async (input, init = {}) => {
    // A Request or FormData of Node's own is foreign to this undici, which would send "[object FormData]".
    if (typeof input === 'object' && !(input instanceof URL)) throw new TypeError('the egress door takes no Request')
    if (Object.prototype.toString.call(init.body) === '[object FormData]') {
      throw new TypeError('the egress door takes no FormData: use request() with a stream')
    }
    const target = checkedUrl(String(input), options)
    const headers = new Headers(init.headers as ConstructorParameters<typeof Headers>[0])
    headers.set('accept-encoding', 'identity')
    const call = { ...init, headers: [...headers], redirect: 'manual', dispatcher } as Parameters<typeof undiciFetch>[1]
    try {
      const response = await undiciFetch(target, call)
      if (!isEncoded(response.headers.get('content-encoding'))) return response
      await response.body?.cancel()
    } catch (cause) {
      throw init.signal?.aborted ? cause : fetchFailure(cause, target.host)
    }
    throw encoded(target.host)
  }
}

const isEncoded = (encoding: unknown) => encoding !== undefined && encoding !== null && encoding !== 'identity'

/** Keeps fetch's own form, a `TypeError` with a cause, for what another try may cure: the provider packages look for it. */
function fetchFailure(cause: unknown, host: string): unknown {
  const { signal } = new AbortController()
  const inner = failure(cause instanceof Error ? cause.cause : cause, { host, signal, deadline: signal, maxBytes: 0 })
  if (inner instanceof AppError && inner.kind === 'invalid_request') return inner
  return new TypeError('fetch failed', { cause: inner })
}

const TIMEOUTS = ['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']
const OVERFLOWS = ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW']

/** What is thrown for a failed exchange: in own words, since foreign ones hold addresses. */
function failure(cause: unknown, { host, signal, deadline }: Limits): unknown {
  if (signal.aborted) return signal.reason
  if (cause instanceof AppError) return cause
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'UND_ERR_INVALID_ARG') return cause
  if (deadline.aborted || TIMEOUTS.includes(code))
    return upstream('egress_timeout', `${host} did not answer in time.`, cause)
  if (OVERFLOWS.includes(code)) return tooLarge(host, cause)
  return upstream('egress_unreachable', `${host} could not be reached or broke off.`, cause)
}

const refused = (message: string) => invalidRequest(message, { code: 'egress_refused' })
const refusedHost = (host: string) =>
  refused(
    `${host} may not be reached: it is not an address of the public internet, or its name leads to one that is not.`,
  )
const encoded = (host: string) =>
  upstream('egress_unreachable', `${host} answered in a compressed form it was not asked for.`)
const tooLarge = (host: string, cause?: unknown) =>
  upstream('egress_too_large', `The answer of ${host} is too large.`, cause)
const upstream = (code: string, message: string, cause?: unknown) => new AppError('upstream', message, { code, cause })
