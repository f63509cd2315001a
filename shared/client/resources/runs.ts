import type { Schema } from '../api.ts'
import { createReads } from '../http/pages.ts'
import { type Keyed, path, withKey } from '../http/request.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import type { Typed } from '../run/answer-schema.ts'
import { type FollowOptions, type RunOptions, RunStream } from '../run/run-stream.ts'

/** With `schema` the output is a value that fits the schema. */
export type StartRun = {
  <T = unknown>(body: Typed<Schema<'RunRequest'>, T>, options?: RunOptions): RunStream<T>
  (body: Schema<'RunRequest'>, options?: RunOptions): RunStream
}

export type Runs = ReturnType<typeof createRuns>

/** Runs of all kinds: running ones, and the records of those that have ended. */
export function createRuns(transport: Transport) {
  const reads = createReads<Schema<'Run'>, Schema<'Run'>>(transport, '/runs', 'run_id')
  return {
    /** In a list running ones come first, then the others, newest first. */
    ...reads,

    /** A run, which starts when it is read: as events, as text, or with `result()`. */
    run: ((body: object, options: RunOptions = {}) =>
      new RunStream({ ...options, transport, start: { path: '/agent/run', body } })) as StartRun,

    /** Starts a run that continues without a reader. Resolves with its id. */
    async start(body: Schema<'RunRequest'>, options: CallOptions & Keyed = {}): Promise<string> {
      const request = withKey({ ...options, has: 'run_id', body: { ...body, background: true } })
      return (await transport.json<Schema<'RunStarted'>>('POST', '/agent/run', request)).run_id
    },

    /** Reads a run from its first event, or after the event `after`. */
    resume(id: string, { after, ...options }: FollowOptions & { after?: number | undefined } = {}): RunStream {
      const sessionOf = async () => (await reads.get(id)).session_id
      return new RunStream({ ...options, transport, id, after, sessionOf })
    },

    /** Sends a text to a running run. Its model reads the text once, at its next call. */
    steer: (id: string, prompt: string, options: CallOptions & Keyed = {}): Promise<Schema<'SteerResponse'>> =>
      transport.json('POST', path`/runs/${id}/steer`, withKey({ ...options, body: { prompt } })),

    cancel: (id: string, options?: CallOptions): Promise<void> => transport.json('DELETE', path`/runs/${id}`, options),
  }
}
