import { type SseEvent, SseParser } from './sse.ts'

/** A stream that the server has begun. 204 has no events. */
export type OpenStream = {
  status: number
  headers: Headers
  events: AsyncGenerator<SseEvent, void, undefined>
  /** The pause before the next connection, when the stream has asked for one. */
  retryMs(): number | undefined
}

type Reading = {
  /** Called before each wait for bytes, and when they have come: a reader that takes its time is not one that waits. */
  onWait(): void
  onBytes(): void
  /** The error to throw for what broke the connection. */
  failureOf(cause: unknown): unknown
  onEnd(): void
}

/** The stream of a response. Whoever stops reading before its end closes the connection. */
export function openStream(response: Response, reading: Reading): OpenStream {
  const parser = new SseParser()
  const { status, headers } = response
  return { status, headers, events: readEvents(response, parser, reading), retryMs: () => parser.retryMs }
}

async function* readEvents(response: Response, parser: SseParser, reading: Reading): OpenStream['events'] {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  const read = async () => {
    reading.onWait()
    try {
      return await reader?.read()
    } catch (cause) {
      throw reading.failureOf(cause)
    }
  }
  try {
    for (let part = await read(); part && !part.done; part = await read()) {
      reading.onBytes()
      yield* parser.feed(decoder.decode(part.value, { stream: true }))
    }
  } finally {
    reading.onEnd()
    await reader?.cancel().catch(() => {}) // It is broken already.
  }
}
