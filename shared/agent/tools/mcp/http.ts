import { type FetchLike, type JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { isJsonObject } from '../../../kernel/json.ts'
import { EventParser } from '../../../platform/net/event-parser.ts'
import { Answers } from './answers.ts'
import type { HttpServerConfig } from './config.ts'

type SendOptions = Parameters<StreamableHTTPClientTransport['send']>[1]

/** Opens the package's transport over HTTP, in which a request ends at once when its response ends without an answer to it. */
export function createHttpTransport(
  { url, headers }: HttpServerConfig,
  fetch: FetchLike,
): StreamableHTTPClientTransport {
  const answers = new Answers((message) => transport.onmessage?.(message))
  /** The requests that are answered by an event stream, which may go on after `send`. */
  const streamed = new Set<number>()
  const checkedFetch: FetchLike = async (target, init) => {
    const response = await fetch(target, init)
    const id = requestIdOf(init?.body)
    if (id === undefined || !isEventStream(response)) return response
    streamed.add(id)
    return withDataCheck(response, (data) => answers.read(data, id))
  }
  const transport = new StreamableHTTPClientTransport(url, { fetch: checkedFetch, requestInit: { headers } })
  const send = transport.send.bind(transport)
  const checkedSend = async (message: JSONRPCMessage | JSONRPCMessage[], options?: SendOptions) => {
    const id = Array.isArray(message) ? undefined : answers.sent(message)
    if (id === undefined) return send(message, options)
    const onRequestStreamEnd = () => {
      answers.cutOff(id)
      options?.onRequestStreamEnd?.()
    }
    await send(message, { ...options, onRequestStreamEnd })
    if (!streamed.delete(id)) answers.cutOff(id)
  }
  // The package calls what it finds as `onmessage` before its own.
  return Object.assign(transport, {
    send: checkedSend,
    onmessage: (message: JSONRPCMessage) => answers.received(message),
  })
}

function requestIdOf(body: unknown): number | undefined {
  const message: unknown = typeof body === 'string' ? JSON.parse(body) : undefined
  return isJsonObject(message) && 'method' in message && typeof message['id'] === 'number' ? message['id'] : undefined
}

const isEventStream = ({ ok, headers }: Response): boolean =>
  ok && (headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream')

/** The same response, whose events are shown to `onData` before they are read. */
function withDataCheck(response: Response, onData: (data: string) => void): Response {
  const parser = new EventParser((data) => {
    if (data !== '') onData(data)
  })
  const check = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      parser.push(chunk)
      controller.enqueue(chunk)
    },
  })
  const { status, statusText, headers } = response
  return new Response(response.body?.pipeThrough(check) ?? null, { status, statusText, headers })
}
