import { type SseEvent, SseParser } from './sse.ts'

/** A stream that the server has begun. 204 has no events. */
export type OpenStream = { status: number; headers: Headers; events: AsyncGenerator<SseEvent, void, undefined> }

type Reading = {
  /** Called when the stream begins and whenever bytes have come. */
  onBytes(): void
  /** The error to throw for what broke the connection. */
  fail(cause: unknown): unknown
  onEnd(): void
}

/** The events of a response, until it ends. Whoever stops before that closes the connection. */
export async function* readEvents(response: Response, { onBytes, fail, onEnd }: Reading): OpenStream['events'] {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  const parser = new SseParser()
  try {
    onBytes()
    for (;;) {
      const part = await reader?.read().catch((cause: unknown) => {
        throw fail(cause)
      })
      if (!part || part.done) return
      onBytes()
      yield* parser.feed(decoder.decode(part.value, { stream: true }))
    }
  } finally {
    onEnd()
    await reader?.cancel().catch(() => {}) // It is broken already.
  }
}
