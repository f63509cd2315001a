import type { Schema } from '../api.ts'
import { type Keyed, keyOf } from '../http/key.ts'
import { Pages } from '../http/pages.ts'
import { at, type CallOptions, type Query, type Transport } from '../http/transport.ts'
import { type FollowOptions, RunStream } from '../run/run-stream.ts'

/** Runs of all kinds: those that go on, and the records of those that have ended. */
export class Runs {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Starts a run that goes on without a reader. Resolves with its id. */
  async start(body: Schema<'RunRequest'>, options: CallOptions & Keyed = {}): Promise<string> {
    const request = { ...options, body: { ...body, background: true }, idempotencyKey: keyOf(options.idempotencyKey) }
    const { run_id } = await this.#transport.json<Schema<'RunStarted'>>('POST', '/agent/run', request)
    return run_id
  }

  /** Reads a run from its first event, or behind the event `after`. */
  resume(id: string, { after, ...options }: FollowOptions & { after?: number | undefined } = {}): RunStream {
    const sessionOf = async () => (await this.get(id)).session_id ?? id
    return new RunStream({ transport: this.#transport, options, id, after, sessionOf })
  }

  get(id: string, options?: CallOptions): Promise<Schema<'Run'>> {
    return this.#transport.json('GET', at('/runs/', id), options)
  }

  /** Those that go on come first, then the others, newest first. */
  list(query?: Query, options?: CallOptions): Pages<Schema<'Run'>> {
    return new Pages(this.#transport, '/runs', { query, ...options })
  }

  async cancel(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.json('DELETE', at('/runs/', id), options)
  }
}
