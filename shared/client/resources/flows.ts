import type { Schema } from '../api.ts'
import { ConnectionFailed, RunFailed } from '../errors.ts'
import type { Meaning } from '../http/follow.ts'
import { type Keyed, keyOf } from '../http/key.ts'
import { Pages } from '../http/pages.ts'
import type { SseEvent } from '../http/sse.ts'
import { at, type CallOptions, type Query, type Transport } from '../http/transport.ts'
import { FollowedRun } from '../run/followed-run.ts'

export type FlowEvent = Schema<'FlowEventFrame'>

type Answer = Omit<Schema<'FlowAnswer'>, 'output' | 'problems' | 'verdict'>

/** `ok`: the output fits the flow's `output_schema`. Otherwise `problems` say why not. */
export type FlowOutcome<Output> = Answer &
  ({ ok: true; output: Output } | { ok: false; problems: Schema<'OutputProblems'> })

export type FlowRunOptions = Omit<CallOptions, 'timeoutMs'> & Keyed & { onEvent?: (event: FlowEvent) => void }

/** The request of `run`. `instance` stands for `provider_instance`. */
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
    const request = { ...body, provider_instance: instance }
    const start = { path: `${at('/flows/', name)}/run`, body: request, idempotencyKey: keyOf(idempotencyKey) }
    const run = new FollowedRun(this.#transport, { start, call, meaningOf, after: undefined })
    for await (const { id, event, data } of run.events) {
      const read = { id: Number(id), event, data: JSON.parse(data) as unknown } as FlowEvent
      onEvent?.(read)
      if (read.event === 'error') throw new RunFailed(read.data, run.id)
      if (read.event === 'result') return outcomeOf(read.data)
    }
    throw new ConnectionFailed('the end of the flow did not come: GET /dispatches/{id} shows it')
  }

  get(name: string, options?: CallOptions): Promise<Schema<'Flow'>> {
    return this.#transport.json('GET', at('/flows/', name), options)
  }

  list(query?: Query, options?: CallOptions): Pages<Schema<'FlowHead'>> {
    return new Pages(this.#transport, '/flows', { query, ...options })
  }
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
