import type { Schema } from '../api.ts'
import { ApiError } from '../errors.ts'
import { keyOf } from '../http/key.ts'
import { Pages } from '../http/pages.ts'
import { at, type CallOptions, type Query, type Transport } from '../http/transport.ts'
import { type RunOptions, RunStream } from '../run/run-stream.ts'

/** Conversations. They live in the server's memory. */
export class Sessions {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Creates a session, or joins the one of this id that exists. `messages` is the history that a new one begins with. */
  async open(
    id?: string,
    { messages, ...call }: CallOptions & { messages?: Schema<'SeedMessage'>[] } = {},
  ): Promise<Session> {
    const body = { ...(id !== undefined && { session_id: id }), ...(messages && { messages }) }
    try {
      const created = await this.#transport.json<Schema<'CreateSessionResponse'>>('POST', '/sessions', {
        body,
        ...call,
      })
      return new Session(this.#transport, created.session_id)
    } catch (cause) {
      if (id !== undefined && cause instanceof ApiError && cause.status === 409) return new Session(this.#transport, id)
      throw cause
    }
  }

  list(query?: Query, options?: CallOptions): Pages<Schema<'SessionInfoResponse'>> {
    return new Pages(this.#transport, '/sessions', { query, ...options })
  }
}

/** One conversation. Its messages are answered one after the other. */
export class Session {
  readonly id: string
  readonly #transport: Transport
  readonly #path: string

  constructor(transport: Transport, id: string) {
    this.id = id
    this.#transport = transport
    this.#path = at('/sessions/', id)
  }

  /** Sends a message. Its run starts when it is read: `await chat.send('hello').result()`. */
  send(message: string | Schema<'SendMessageRequest'>, { idempotencyKey, ...options }: RunOptions = {}): RunStream {
    const body = typeof message === 'string' ? { prompt: message } : message
    const start = { path: `${this.#path}/messages`, body, idempotencyKey: keyOf(idempotencyKey) }
    return new RunStream({ transport: this.#transport, options, start, sessionOf: async () => this.id })
  }

  get(options?: CallOptions): Promise<Schema<'SessionInfoResponse'>> {
    return this.#transport.json('GET', this.#path, options)
  }

  /** The history that the next message continues, oldest first. */
  messages(options?: CallOptions): Pages<Schema<'SessionMessage'>> {
    return new Pages(this.#transport, `${this.#path}/messages`, { ...options })
  }

  rename(title: string, options?: CallOptions): Promise<Schema<'SessionInfoResponse'>> {
    return this.#transport.json('PATCH', this.#path, { body: { title }, ...options })
  }

  /** Ends the session, its runs and its pending permission requests. */
  async delete(options?: CallOptions): Promise<void> {
    await this.#transport.json('DELETE', this.#path, options)
  }
}
