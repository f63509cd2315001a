import type { RunEvent } from '../api.ts'
import { ApiError, ConnectionFailed, RunLost } from '../errors.ts'
import { type Keyed, keyOf } from '../http/key.ts'
import type { OpenStream } from '../http/open-stream.ts'
import { path } from '../http/path.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { endOfRecord } from './run-end.ts'

/** The request that starts a run. */
export type RunStart = { path: string; body: unknown }

export type RunOrigin = {
  transport: Transport
  start?: RunStart
  /** Set for a run that was started before. */
  id?: string
  options: Keyed
}

const NO_ID = 'no X-Run-ID in the answer: another origin needs CORS_RESUME at the server'

/** The streams of a run: it is started once, and then resumed behind its last event. */
export class RunSource {
  /** The run's id, once the server has taken it. */
  id: string | undefined
  readonly #transport: Transport
  readonly #key: string | undefined
  #start: RunStart | undefined

  constructor({ transport, start, id, options }: RunOrigin) {
    this.#transport = transport
    this.#key = keyOf(options)
    this.#start = start
    this.id = id
  }

  get knownId(): string {
    if (this.id === undefined) throw new ConnectionFailed(NO_ID)
    return this.id
  }

  /** The next stream, behind the event `lastEventId`. */
  async open(lastEventId: string | undefined, call: CallOptions): Promise<OpenStream> {
    if (this.id === undefined && this.#start) return this.#begin(this.#start, call)
    const id = this.knownId
    try {
      return await this.#transport.openStream(path`/runs/${id}/events`, { lastEventId, ...call })
    } catch (cause) {
      throw cause instanceof ApiError && cause.status === 404 ? new RunLost(id, cause) : cause
    }
  }

  /** Without an id in the answer, only a key finds the run again. */
  async #begin(start: RunStart, call: CallOptions): Promise<OpenStream> {
    const idempotencyKey = this.#key
    if (idempotencyKey === undefined) this.#start = undefined
    const stream = await this.#transport.startStream(start.path, { body: start.body, idempotencyKey, ...call })
    this.id = stream.response.headers.get('x-run-id') ?? undefined
    return stream
  }

  /** The end of a run of which no event is left, from its record. */
  async findEnd(lastEventId: number): Promise<RunEvent> {
    return endOfRecord(await this.#transport.json('GET', path`/runs/${this.knownId}`), lastEventId)
  }

  cancel(): Promise<void> {
    return this.#transport.json('DELETE', path`/runs/${this.knownId}`)
  }
}
