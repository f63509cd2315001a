/** One event of an event stream. `id` is the newest that the stream has named. */
export type SseEvent = { id: string; event: string; data: string }

/** An event above this many characters is refused. The server's are far smaller. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024

/** The name of a field, and its value without the blank in front. */
const FIELD = /^([^:]*):? ?(.*)$/s

/**
 * Makes events of the text of a stream, as the specification of server-sent events says: lines end with CR, LF or both, wherever the
 * text is divided. An event that is not complete at the end is dropped.
 */
export class SseParser {
  /** When the server asks for it, the pause before a new connection. */
  retryMs: number | undefined
  #rest = ''
  #next: { id: string; event?: string; data?: string } = { id: '' }
  /** The text so far ended with CR: an LF that follows belongs to it. */
  #endedWithCr = false

  /** Takes the next text and returns the events that it completes. */
  feed(text: string): SseEvent[] {
    if (text === '') return []
    const lines = (this.#endedWithCr ? text.replace(/^\n/, '') : text).split(/\r\n|\n|\r/)
    this.#endedWithCr = text.endsWith('\r')
    lines[0] = this.#rest + lines[0]
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length + (this.#next.data?.length ?? 0) > MAX_EVENT_CHARS)
      throw new RangeError('an event is too large')
    return lines.flatMap((line) => this.#takeLine(line))
  }

  #takeLine(line: string): SseEvent[] {
    const next = this.#next
    const { id, event, data } = next
    if (line === '') {
      this.#next = { id }
      return data === undefined ? [] : [{ id, event: event || 'message', data }]
    }
    const [, field, value = ''] = FIELD.exec(line) ?? []
    if (field === 'data') next.data = data === undefined ? value : `${data}\n${value}`
    if (field === 'event') next.event = value
    if (field === 'id' && !value.includes('\0')) next.id = value
    if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value)
    return []
  }
}
