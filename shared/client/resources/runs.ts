import type { Schema } from '../api.ts'
import { keyOf } from '../http/key.ts'
import { Pages } from '../http/pages.ts'
import type { CallOptions, Query, Transport } from '../http/transport.ts'
import { type FollowOptions, type RunOptions, RunStream } from '../run/run-stream.ts'

/** Runs of all kinds: those that go on, and the records of those that have ended. */
export class Runs {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Starts a run that goes on without a reader. */
  async start(
    body: Schema<'RunRequest'>,
    options: CallOptions & Pick<RunOptions, 'idempotencyKey'> = {},
  ): Promise<string> {
    const { idempotencyKey, ...call } = options
    const request = { method: 'POST', path: '/agent/run', body: { ...body, background: true }, ...call }
    const { run_id } = await this.#transport.json<Schema<'RunStarted'>>({
      ...request,
      idempotencyKey: keyOf(idempotencyKey),
    })
    return run_id
  }

  /** Reads a run from its first event, or behind the event `after`. */
  resume(id: string, { after, ...options }: FollowOptions & { after?: number | undefined } = {}): RunStream {
    const sessionId = async () => (await this.get(id)).session_id ?? id
    return new RunStream({
      transport: this.#transport,
      options,
      start: id,
      sessionId,
      ...(after !== undefined && { after }),
    })
  }

  get(id: string, options: CallOptions = {}): Promise<Schema<'Run'>> {
    return this.#transport.json({ method: 'GET', path: `/runs/${encodeURIComponent(id)}`, ...options })
  }

  /** Those that go on come first, then the others, newest first. */
  list(query: Query = {}, options: CallOptions = {}): Pages<Schema<'Run'>> {
    return new Pages({ transport: this.#transport, path: '/runs', field: 'runs', query, options })
  }

  async cancel(id: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json({ method: 'DELETE', path: `/runs/${encodeURIComponent(id)}`, ...options })
  }
}
