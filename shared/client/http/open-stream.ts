import { AgentEngineError } from '../errors.ts'
import { type SseEvent, SseParser } from './sse.ts'
import type { Deadline } from './wait.ts'

export const EVENTS = 'text/event-stream'

/** A stream that the server has begun. 204 has no events. */
export type OpenStream = {
  response: Response
  events: AsyncGenerator<SseEvent, void, undefined>
  /** Knows the pause before the next connection, when the stream has asked for one. */
  parser: SseParser
}

/** The stream of a response. Whoever stops reading before its end closes the connection. */
export function openStream(response: Response, deadline: Deadline, stallMs: number): OpenStream {
  const type = response.headers.get('content-type')
  // A stream that is none comes from something between us and the server, which would answer in the same way again.
  if (response.status === 200 && !type?.startsWith(EVENTS))
    throw new AgentEngineError(`the answer is no event stream but ${type ?? 'of no type'}`)
  deadline.pause()
  const parser = new SseParser()
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  async function* read(): OpenStream['events'] {
    try {
      for (;;) {
        // A reader that takes its time is not one that waits.
        deadline.restart(stallMs, 'byte of the stream')
        const part = await reader?.read().catch(deadline.fail)
        deadline.pause()
        if (!part || part.done) return
        yield* parser.feed(decoder.decode(part.value, { stream: true }))
      }
    } finally {
      deadline.release()
    }
  }
  return { response, events: read(), parser }
}
