import { connectionFailed, wrongAnswer } from '../errors.ts'
import { within } from './wait.ts'

export const EVENTS = 'text/event-stream'

/** A stream that the server has begun. 204 has no events. */
export type OpenStream = {
  response: Response
  events: AsyncGenerator<SseEvent, void, undefined>
  /** Closes the connection. The reader of the events must abort it at the end: nothing else does. */
  abort: AbortController
  /** The pause before the next connection, when the stream has asked for one. */
  retryMs?: number
}

/** Opens the stream of a response; `abort` ends it. */
export function openStream(response: Response, abort: AbortController, stallMs: number): OpenStream {
  const type = response.headers.get('content-type')
  // Another type comes from something between us and the server, such as a proxy, and would come again.
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

/** One event of an event stream. `id` is the newest id in the stream so far. */
export type SseEvent = { id: string; event: string; data: string }

/** An event above this many characters is refused. The server sends far smaller ones. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024

/** The name of a field, and its value without the leading blank. */
const FIELD = /^([^:]*):? ?(.*)$/s

/**
 * Parses the events in the text of a stream, by the specification of server-sent events: lines end with CR, LF or both, wherever the
 * text is divided. An incomplete event at the end is dropped. `onRetry` gets the pause before a new connection that the server asks for:
 * at most 99,999 ms.
 */
export async function* readEvents(
  texts: AsyncIterable<string>,
  onRetry: (ms: number) => void,
): AsyncGenerator<SseEvent, void, undefined> {
  let rest = ''
  let endedWithCr = false
  let id = ''
  let event = ''
  let data = ''
  for await (const text of texts) {
    // An LF after a CR that ended the previous text belongs to that CR.
    const lines = (endedWithCr ? text.replace(/^\n/, '') : text).split(/\r\n|\n|\r/)
    if (text) endedWithCr = text.endsWith('\r')
    lines[0] = rest + lines[0]
    rest = lines.pop() ?? ''
    if (rest.length + data.length > MAX_EVENT_CHARS) throw new RangeError('an event is too large')
    for (const line of lines) {
      const [, field, value] = FIELD.exec(line) as unknown as [string, string, string] // The expression matches every line.
      if (field === 'id' && !value.includes('\0')) id = value
      if (field === 'event') event = value
      if (field === 'data') data += `${value}\n`
      if (field === 'retry' && /^\d{1,5}$/.test(value)) onRetry(Number(value))
      if (line) continue
      if (data) yield { id, event: event || 'message', data: data.slice(0, -1) }
      event = ''
      data = ''
    }
  }
}
