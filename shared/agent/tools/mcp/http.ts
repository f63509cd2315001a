import { type FetchLike, type JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { isJsonObject } from '../../../kernel/json.ts'
import { EventParser } from '../../../platform/net/event-parser.ts'
import { Answers, tooLarge } from './answers.ts'
import { type HttpServerConfig, MAX_ANSWER_BYTES } from './config.ts'

type SendOptions = Parameters<StreamableHTTPClientTransport['send']>[1]

/** Opens the package's transport over HTTP, in which a request ends at once when its response ends without an answer to it. */
export function createHttpTransport(
  { url, headers }: HttpServerConfig,
  fetch: FetchLike,
): StreamableHTTPClientTransport {
  const answers = new Answers((message) => transport.onmessage?.(message))
  /** The requests that are answered by an event stream, which may continue after `send`. */
  const streamed = new Set<number>()
  const checkedFetch: FetchLike = async (target, init) => {
    const response = await fetch(target, init)
    const id = requestIdOf(init?.body)
    if (id === undefined || !isEventStream(response)) return response
    streamed.add(id)
    const onData = (data: string) => answers.read(data, id)
    return withDataCheck(response, { onData, onFailure: (cause) => isTooLarge(cause) && answers.end(id, TOO_LARGE) })
  }
  const transport = new StreamableHTTPClientTransport(url, { fetch: checkedFetch, requestInit: { headers } })
  const send = transport.send.bind(transport)
  const checkedSend = async (message: JSONRPCMessage | JSONRPCMessage[], options?: SendOptions) => {
    const id = Array.isArray(message) ? undefined : answers.sent(message)
    if (id === undefined) return send(message, options)
    const onRequestStreamEnd = () => {
      answers.end(id)
      options?.onRequestStreamEnd?.()
    }
    await send(message, { ...options, onRequestStreamEnd }).catch((cause: unknown) => {
      if (isTooLarge(cause)) answers.end(id, TOO_LARGE)
      throw cause
    })
    if (!streamed.delete(id)) answers.end(id)
  }
  // The package calls an existing `onmessage` before its own.
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

const TOO_LARGE = tooLarge(MAX_ANSWER_BYTES.http)

/** Whether the body of a response was above the limit of the outgoing client. */
const isTooLarge = (cause: unknown): boolean =>
  cause instanceof Error &&
  (('code' in cause && cause.code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') || isTooLarge(cause.cause))

type BodyListener = { onData: (data: string) => void; onFailure: (cause: unknown) => void }

/** The same response, whose events are shown to `onData` before they are read. */
function withDataCheck(response: Response, listener: BodyListener): Response {
  const { status, statusText, headers, body } = response
  const checked = body && ReadableStream.from(checkedChunks(body, listener))
  return new Response(checked, { status, statusText, headers })
}

async function* checkedChunks(body: ReadableStream<Uint8Array>, { onData, onFailure }: BodyListener) {
  const parser = new EventParser((data) => {
    if (data !== '') onData(data)
  })
  try {
    for await (const chunk of body) {
      parser.push(chunk)
      yield chunk
    }
  } catch (cause) {
    onFailure(cause)
    throw cause
  }
}
