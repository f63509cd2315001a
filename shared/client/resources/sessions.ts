import type { Schema } from '../api.ts'
import { isRefusal } from '../errors.ts'
import { pages } from '../http/pages.ts'
import { path } from '../http/request.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import type { Typed } from '../run/answer-schema.ts'
import { type RunOptions, RunStream } from '../run/run-stream.ts'

export type Sessions = ReturnType<typeof createSessions>

/** Conversations. They live in the server's memory. */
export const createSessions = (transport: Transport) => ({
  /** Creates a session, or joins the one of this id that exists. `messages` is the history that a new one begins with. */
  async open(
    id?: string,
    { messages, ...call }: CallOptions & { messages?: Schema<'SeedMessage'>[] } = {},
  ): Promise<Session> {
    const body = { session_id: id, messages }
    try {
      const created = await transport.json<Schema<'CreateSessionResponse'>>('POST', '/sessions', {
        ...call,
        body,
        has: 'session_id',
      })
      return createSession(transport, created.session_id)
    } catch (cause) {
      if (id && isRefusal(cause, 409)) return createSession(transport, id)
      throw cause
    }
  },

  list: pages<Schema<'SessionInfoResponse'>>(transport, '/sessions'),
})

/** With `schema` the output is a value that fits the schema. */
export type SendMessage = {
  <T = unknown>(message: Typed<Schema<'SendMessageRequest'>, T>, options?: RunOptions): RunStream<T>
  (message: string | Schema<'SendMessageRequest'>, options?: RunOptions): RunStream
}

/** One conversation. Its messages are answered one after the other. */
export type Session = ReturnType<typeof createSession>

export function createSession(transport: Transport, id: string) {
  const own = path`/sessions/${id}`
  return {
    id,

    /** Sends a message. Its run starts when it is read: `await chat.send('hello').result()`. */
    send: ((message: string | object, options: RunOptions = {}) => {
      const body = typeof message === 'string' ? { prompt: message } : message
      const start = { path: `${own}/messages`, body }
      return new RunStream({ ...options, transport, start, sessionOf: () => id })
    }) as SendMessage,

    get: (options?: CallOptions): Promise<Schema<'SessionInfoResponse'>> => transport.json('GET', own, options),

    /** The history that the next message continues, oldest first, or the branch that ends with the message `head`. */
    messages: pages<Schema<'SessionMessage'>>(transport, `${own}/messages`),

    /** Creates a separate session that continues from the message `at`, or from the last one of the run `at`. */
    fork: (at: string, session_id?: string, options?: CallOptions): Promise<Schema<'ForkedSession'>> =>
      transport.json('POST', `${own}/fork`, { body: { at, session_id }, ...options }),

    rename: (title: string, options?: CallOptions): Promise<Schema<'SessionInfoResponse'>> =>
      transport.json('PATCH', own, { body: { title }, ...options }),

    /** Ends the session, its runs and its pending permission requests. */
    delete: (options?: CallOptions): Promise<void> => transport.json('DELETE', own, options),
  }
}
