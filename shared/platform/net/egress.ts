import { Agent, DecoratorHandler, type Dispatcher, Headers, fetch as undiciFetch } from 'undici'
import { type AddressPolicy, checkUrl, createConnectionGuard } from './address-policy.ts'
import { compressed, type ExchangeLimits, toEgressFailure, toFetchFailure, tooLarge } from './failures.ts'
import { createGuardedConnector } from './guarded-connector.ts'
import type { Egress, EgressRequest, EgressResponse } from './port.ts'

export type EgressOptions = AddressPolicy & {
  /** Default: 5 s. */
  connectTimeoutMs?: number
  /** The longest silence before the headers, and between two chunks of the body. Default: 60 s. */
  idleTimeoutMs?: number
  /** The longest body. Default: 64 MiB. */
  maxBodyBytes?: number
}

const MAX_HEADER_BYTES = 16 * 1024
const MAX_BODY_BYTES = 64 * 1024 * 1024

/** Opens the guarded outgoing client, with its own connection pool. Its contract is `Egress`. */
export function createEgress(options: EgressOptions): Egress {
  const { idleTimeoutMs = 60_000, maxBodyBytes = MAX_BODY_BYTES, connectTimeoutMs: timeout = 5_000 } = options
  const dispatcher = new Agent({
    connect: createGuardedConnector(createConnectionGuard(options), { timeout }),
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    maxResponseSize: maxBodyBytes,
  })
  return {
    request: async (url, request) => send(checkUrl(url, options), request, dispatcher),
    fetch: createGuardedFetch(options, dispatcher),
    close: () => dispatcher.destroy(),
  }
}

async function send(target: URL, request: EgressRequest, dispatcher: Dispatcher): Promise<EgressResponse> {
  const deadline = AbortSignal.timeout(request.timeoutMs)
  const limits = { host: target.host, signal: request.signal, deadline, maxBytes: request.maxBytes }
  const { beforeSend } = request
  const sender = beforeSend ? dispatcher.compose(checkBeforeSend(beforeSend)) : dispatcher
  try {
    const { statusCode, headers, body } = await sender.request({
      origin: target.origin,
      path: `${target.pathname}${target.search}`,
      method: request.method ?? 'GET',
      headers: { ...request.headers, 'accept-encoding': 'identity' },
      body: request.body ?? null,
      signal: AbortSignal.any([request.signal, deadline]),
    })
    // A body that is destroyed before its end emits an error, which would crash the process without a listener.
    const discard = () => void body.on('error', () => {}).destroy()
    if (isCompressed(headers['content-encoding'])) {
      discard()
      throw compressed(target.host)
    }
    return { status: statusCode, headers, body: limitBytes(body, limits), discard }
  } catch (cause) {
    throw toEgressFailure(cause, limits)
  }
}

const checkBeforeSend =
  (check: () => void): Dispatcher.DispatcherComposeInterceptor =>
  (dispatch) =>
  (options, handler) =>
    dispatch(options, checkedHandler(handler, check))

/** Undici calls `onRequestStart` right before it writes a request; an error that it throws becomes the error of the request. */
function checkedHandler(handler: Dispatcher.DispatchHandler, check: () => void): Dispatcher.DispatchHandler {
  // Undici's types leave out that this class has the methods of the handler that it wraps.
  const wrapper = new DecoratorHandler(handler) as Required<Dispatcher.DispatchHandler>
  const start = wrapper.onRequestStart.bind(wrapper)
  wrapper.onRequestStart = (...args) => {
    check()
    start(...args)
  }
  return wrapper
}

async function* limitBytes(body: AsyncIterable<Uint8Array>, limits: ExchangeLimits): AsyncGenerator<Uint8Array> {
  let bytes = 0
  try {
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > limits.maxBytes) throw tooLarge(limits.host)
      yield chunk
    }
  } catch (cause) {
    throw toEgressFailure(cause, limits)
  }
}

function createGuardedFetch(policy: AddressPolicy, dispatcher: Dispatcher): typeof globalThis.fetch {
  return async (input, init = {}) => {
    // Objects of Node's own `fetch` are foreign to the undici package, which would send them as "[object FormData]".
    if (typeof input === 'object' && !(input instanceof URL)) throw new TypeError('the egress fetch takes no Request')
    if (Object.prototype.toString.call(init.body) === '[object FormData]') {
      throw new TypeError('the egress fetch takes no FormData: use request() with a stream')
    }
    const target = checkUrl(String(input), policy)
    const headers = new Headers(init.headers as ConstructorParameters<typeof Headers>[0])
    headers.set('accept-encoding', 'identity')
    const call = { ...init, headers: [...headers], redirect: 'manual', dispatcher } as Parameters<typeof undiciFetch>[1]
    try {
      const response = await undiciFetch(target, call)
      if (!isCompressed(response.headers.get('content-encoding'))) return response
      await response.body?.cancel()
    } catch (cause) {
      throw init.signal?.aborted ? cause : toFetchFailure(cause, target.host)
    }
    throw compressed(target.host)
  }
}

const isCompressed = (encoding: unknown) => encoding !== undefined && encoding !== null && encoding !== 'identity'
