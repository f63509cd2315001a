import { ApiError, ConnectionFailed, RunLost } from '../errors.ts'
import { type Followed, follow, isPassing } from '../http/follow.ts'
import type { OpenStream } from '../http/open-stream.ts'
import type { SseEvent } from '../http/sse.ts'
import { at, type Call, type Transport } from '../http/transport.ts'

/** The request that starts a run. */
export type RunStart = { path: string; body: unknown; idempotencyKey: string | undefined }

type Options = Pick<Followed, 'meaningOf' | 'after'> & {
  /** Set for a run that was started before. */
  id?: string | undefined
  start?: RunStart | undefined
  call: Pick<Call, 'signal' | 'traceparent'>
}

export const NO_ID = 'the answer has no X-Run-ID: a web page of another origin needs CORS_RESUME at the server'

/** A server that answers over connections that break, and sends no event for this long, is given up. Permission requests wait for less. */
const PATIENCE_MS = 30 * 60_000

/** A run over as many connections as it takes: it is started once, and then resumed behind its last event. */
export class FollowedRun {
  /** Known once the server has taken the run. */
  id: string | undefined
  readonly events: AsyncGenerator<SseEvent, void, undefined>
  readonly #transport: Transport
  readonly #options: Options
  #isSent = false

  constructor(transport: Transport, options: Options) {
    this.#transport = transport
    this.#options = options
    this.id = options.id
    this.events = follow({
      open: (after) => (this.id === undefined ? this.#start() : this.#resume(this.id, after)),
      mayRetry: (cause) => isPassing(cause) && this.id !== undefined,
      meaningOf: options.meaningOf,
      after: options.after,
      signal: options.call.signal,
      resumeMs: transport.resumeMs,
      patienceMs: PATIENCE_MS,
    })
  }

  /** Without an id, the key finds a run that was started. */
  async #start(): Promise<OpenStream> {
    const { start, call } = this.#options
    if (!start || (this.#isSent && start.idempotencyKey === undefined)) throw new ConnectionFailed(NO_ID)
    this.#isSent = true
    const { path, ...request } = start
    const stream = await this.#transport.startStream(path, { ...request, ...call })
    this.id = stream.headers.get('x-run-id') ?? undefined
    return stream
  }

  async #resume(id: string, lastEventId: string | undefined): Promise<OpenStream> {
    try {
      return await this.#transport.openStream(`${at('/runs/', id)}/events`, { lastEventId, ...this.#options.call })
    } catch (cause) {
      if (cause instanceof ApiError && cause.status === 404) throw new RunLost(id, cause)
      throw cause
    }
  }
}
