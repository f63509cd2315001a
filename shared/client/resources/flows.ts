import type { Schema } from '../api.ts'
import { ApiError, RunFailed, RunLost } from '../errors.ts'
import { follow, isPassing, type Meaning } from '../http/follow.ts'
import { keyOf } from '../http/key.ts'
import type { OpenStream } from '../http/open-stream.ts'
import { Pages } from '../http/pages.ts'
import type { SseEvent } from '../http/sse.ts'
import type { Call, CallOptions, Query, Transport } from '../http/transport.ts'
import type { RunOptions } from '../run/run-stream.ts'

export type FlowEvent = Schema<'FlowEventFrame'>

type Answer = Omit<Schema<'FlowAnswer'>, 'output' | 'problems' | 'verdict'>

/** `ok`: the output fits the flow's `output_schema`. Otherwise `problems` say why not. */
export type FlowOutcome<Output> = Answer &
  ({ ok: true; output: Output } | { ok: false; problems: Schema<'OutputProblems'> })

export type FlowRunOptions = Omit<CallOptions, 'timeoutMs'> &
  Pick<RunOptions, 'idempotencyKey'> & { onEvent?: (event: FlowEvent) => void }

/** What `run` takes. `instance` stands for `provider_instance`. */
export type FlowRun = Omit<Schema<'FlowRunRequest'>, 'provider_instance'> & { instance: string }

/** Named flows: JSON in, JSON out that fits a schema. */
export class Flows {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /**
   * Runs a published flow. It is followed as a stream, so that a connection that breaks costs nothing. Throws `ApiError` for what is
   * refused and `RunFailed` for a flow that fails.
   */
  async run<Output = unknown>(
    name: string,
    { instance, ...body }: FlowRun,
    options: FlowRunOptions = {},
  ): Promise<FlowOutcome<Output>> {
    const { idempotencyKey, onEvent, ...call } = options
    const path = `/flows/${encodeURIComponent(name)}/run`
    const request = { ...body, provider_instance: instance }
    const start = { method: 'POST', path, body: request, idempotencyKey: keyOf(idempotencyKey), ...call }
    for await (const event of this.#follow(start)) {
      onEvent?.(event)
      if (event.event === 'result') return outcomeOf(event.data)
    }
    throw new RunFailed(NO_END, undefined)
  }

  get(name: string, options: CallOptions = {}): Promise<Schema<'Flow'>> {
    return this.#transport.json({ method: 'GET', path: `/flows/${encodeURIComponent(name)}`, ...options })
  }

  list(query: Query = {}, options: CallOptions = {}): Pages<Schema<'FlowHead'>> {
    return new Pages({ transport: this.#transport, path: '/flows', field: 'flows', query, options })
  }

  async *#follow(start: Call): AsyncGenerator<FlowEvent, void, undefined> {
    let runId: string | undefined
    const events = follow({
      open: async (after) => {
        if (runId !== undefined) return this.#resume(runId, { ...start, lastEventId: after })
        const stream = await this.#transport.stream(start)
        runId = stream.headers.get('x-run-id') ?? undefined
        return stream
      },
      mayRetry: (cause) => isPassing(cause) && runId !== undefined,
      meaningOf,
      after: undefined,
      signal: start.signal,
      resumeMs: this.#transport.resumeMs,
      patienceMs: PATIENCE_MS,
    })
    for await (const { id, event, data } of events) {
      const read = { id: Number(id), event, data: JSON.parse(data) as unknown } as FlowEvent
      yield read
      if (read.event === 'error') throw new RunFailed(read.data, runId)
    }
  }

  async #resume(runId: string, { signal, traceparent, lastEventId }: Call): Promise<OpenStream> {
    try {
      const path = `/runs/${runId}/events`
      return await this.#transport.openStream({ method: 'GET', path, lastEventId, signal, traceparent })
    } catch (cause) {
      if (cause instanceof ApiError && cause.status === 404) throw new RunLost(runId, cause)
      throw cause
    }
  }
}

const PATIENCE_MS = 30 * 60_000

const NO_END: Schema<'ErrorData'> = {
  error: 'the end of the flow was not delivered',
  code: 'stream_gap',
  detail: '',
  suggestion: 'Read how it ended at GET /dispatches/{id}, or send the request again with its key.',
  retryable: true,
}

/** An `error` without a trace id ends the stream and not the flow. */
function meaningOf({ id, event, data }: SseEvent, last: string | undefined): Meaning {
  if (event === 'error') return 'trace_id' in (JSON.parse(data) as object) ? 'last' : 'broken'
  if (Number(id) <= Number(last ?? 0)) return 'known'
  return event === 'result' ? 'last' : 'next'
}

function outcomeOf<Output>({ verdict, output, problems, ...answer }: Schema<'FlowResultData'>): FlowOutcome<Output> {
  if (verdict === 'ok') return { ...answer, ok: true, output: output as Output }
  return { ...answer, ok: false, problems: problems ?? [] }
}
