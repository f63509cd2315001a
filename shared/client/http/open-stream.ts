import { connectionFailed, wrongAnswer } from '../errors.ts'
import { readEvents, type SseEvent } from './sse.ts'
import { within } from './wait.ts'

export const EVENTS = 'text/event-stream'

/** A stream that the server has begun. 204 has no events. */
export type OpenStream = {
  response: Response
  events: AsyncGenerator<SseEvent, void, undefined>
  /** Closes the connection. Whoever reads the events does so in the end, as nothing else does. */
  abort: AbortController
  /** The pause before the next connection, when the stream has asked for one. */
  retryMs?: number
}

/** The stream of a response, which `abort` ends. */
export function openStream(response: Response, abort: AbortController, stallMs: number): OpenStream {
  const type = response.headers.get('content-type')
  // A stream that is none comes from something between us and the server, which would answer in the same way again.
  if (response.status === 200 && !type?.startsWith(EVENTS)) wrongAnswer(type)
  const decoder = new TextDecoder()
  async function* read(): AsyncGenerator<string, void, undefined> {
    const reader = (response.body as ReadableStream<Uint8Array>).getReader() // Only 204 has no body, and it is not read.
    for (;;) {
      const { value, done } = await within(stallMs, reader.read().catch(connectionFailed), abort)
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  }
  const stream: OpenStream = { response, abort, events: readEvents(read(), (ms) => void (stream.retryMs = ms)) }
  return stream
}
