import type { Schema } from '../api.ts'
import { type Keyed, keyOf } from '../http/key.ts'
import { type Pages, pages } from '../http/pages.ts'
import { path } from '../http/path.ts'
import type { CallOptions, Query, Transport } from '../http/transport.ts'
import { type FollowOptions, type RunOptions, RunStream } from '../run/run-stream.ts'

export type Runs = ReturnType<typeof createRuns>

/** Runs of all kinds: those that go on, and the records of those that have ended. */
export function createRuns(transport: Transport) {
  const get = (id: string, options?: CallOptions): Promise<Schema<'Run'>> =>
    transport.json('GET', path`/runs/${id}`, options)
  return {
    /** A run, which starts when it is read: as events, as text, or with `result()`. */
    run: (body: Schema<'RunRequest'>, options: RunOptions = {}): RunStream =>
      new RunStream({ transport, options, start: { path: '/agent/run', body } }),

    get,

    /** Starts a run that goes on without a reader. Resolves with its id. */
    async start(body: Schema<'RunRequest'>, options: CallOptions & Keyed = {}): Promise<string> {
      const request = { ...options, body: { ...body, background: true }, idempotencyKey: keyOf(options) }
      return (await transport.json<Schema<'RunStarted'>>('POST', '/agent/run', request)).run_id
    },

    /** Reads a run from its first event, or behind the event `after`. */
    resume(id: string, { after, ...options }: FollowOptions & { after?: number | undefined } = {}): RunStream {
      const sessionOf = async () => (await get(id)).session_id ?? id
      return new RunStream({ transport, options, id, after, sessionOf })
    },

    /** Those that go on come first, then the others, newest first. */
    list: (query?: Query, options?: CallOptions): Pages<Schema<'Run'>> => pages(transport, '/runs', query, options),

    cancel: (id: string, options?: CallOptions): Promise<void> => transport.json('DELETE', path`/runs/${id}`, options),
  }
}
