import { randomUUID } from 'node:crypto'
import { initOf } from '../../support/api-client.ts'
import { until } from '../../support/until.ts'

/** A message as a page shows it. One that was refused is shown, too, and no model has read it. */
export type Shown = { id: string; role: 'user' | 'assistant'; text: string; wasRefused?: true }

export type Wire = 'ui' | 'ag-ui'
type Chunk = Record<string, unknown> & { type: string }
type Sending = { trigger?: string; messageId?: string }

/** A page with the whole list of its messages, which it sends each time, as `useChat` and the clients of AG-UI do. */
export class Page {
  readonly id: string = `chat-${randomUUID()}`
  messages: Shown[] = []
  url: string
  readonly #wire: Wire

  constructor(url: string, wire: Wire) {
    this.url = url
    this.#wire = wire
  }

  /** Sends a new message behind those that are shown. */
  async send(text: string, { isAttached = false } = {}): Promise<void> {
    this.messages = [
      ...this.messages,
      { id: randomUUID(), role: 'user', text, ...(isAttached && { wasRefused: true }) },
    ]
    await this.#post({ trigger: 'submit-message' })
  }

  /** Replaces a message of the user, and what came after it. `useChat` keeps its id; other packages give another one. */
  async edit(id: string, text: string, { keepsId }: { keepsId: boolean }): Promise<void> {
    const at = this.messages.findIndex((message) => message.id === id)
    const edited: Shown = { id: keepsId ? id : randomUUID(), role: 'user', text }
    this.messages = [...this.messages.slice(0, at), edited]
    await this.#post({ trigger: 'submit-message', ...(keepsId && { messageId: id }) })
  }

  /** Asks for another answer to the message of the user that is before this message, or is it. */
  async regenerate(id: string): Promise<void> {
    const at = this.messages.findIndex((message) => message.id === id)
    this.messages = this.messages.slice(0, this.messages[at]?.role === 'user' ? at + 1 : at)
    await this.#post({ trigger: 'regenerate-message' })
  }

  async #post(sending: Sending): Promise<void> {
    const [path, body] = this.#wire === 'ui' ? ['/ui/chat', this.#uiBody(sending)] : ['/ag-ui', this.#agUiBody()]
    const { response, text } = await until(() => this.#sendOnce(path, body), { what: 'a worker', everyMs: 200 })
    if (response.status === 400) return
    if (response.status !== 200) throw new Error(`${response.status}: ${text}`)
    const chunks = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json ?? '') as Chunk)
    this.messages = [...this.messages, ...this.#answersIn(chunks)]
  }

  /** `undefined` where no worker takes the message: then a person sends it again. */
  async #sendOnce(path: string, body: object): Promise<{ response: Response; text: string } | undefined> {
    const response = await fetch(this.url + path, initOf('POST', body))
    const text = await response.text()
    return response.status === 503 ? undefined : { response, text }
  }

  #uiBody(sending: Sending): object {
    const messages = this.messages.map(({ id, role, text, wasRefused }) => ({
      ...{ id, role },
      parts: [...(wasRefused ? [{ type: 'file', url: 'data:,' }] : []), { type: 'text', text }],
    }))
    return { id: this.id, messages, ...sending }
  }

  #agUiBody(): object {
    const messages = this.messages.map(({ id, role, text, wasRefused }) => ({
      ...{ id, role },
      content: wasRefused
        ? [
            { type: 'image', source: {} },
            { type: 'text', text },
          ]
        : text,
    }))
    return { threadId: this.id, runId: randomUUID(), messages, tools: [], context: [] }
  }

  #answersIn(chunks: readonly Chunk[]): Shown[] {
    const delta = this.#wire === 'ui' ? 'text-delta' : 'TEXT_MESSAGE_CONTENT'
    const text = chunks.flatMap((chunk) => (chunk.type === delta ? [chunk['delta']] : [])).join('')
    const begin = chunks.find(({ type }) => type === (this.#wire === 'ui' ? 'start' : 'TEXT_MESSAGE_START'))
    return text === '' ? [] : [{ id: String(begin?.['messageId']), role: 'assistant', text }]
  }
}
