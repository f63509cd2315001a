import type { Schema } from '../api.ts'
import { RunLost } from '../errors.ts'
import type { IsEnd } from '../http/follow.ts'
import { createReads } from '../http/pages.ts'
import { type Keyed, path } from '../http/request.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { RunStream } from '../run/run-stream.ts'

export type FlowEvent = Schema<'FlowEventFrame'>

type Answer = Omit<Schema<'FlowAnswer'>, 'output' | 'problems'>

/** `ok`: the output fits the flow's `output_schema`. If not, `problems` says why. */
export type FlowOutcome<Output> = Answer &
  ({ ok: true; output: Output } | { ok: false; problems: Schema<'OutputProblems'> })

export type FlowRunOptions = Omit<CallOptions, 'timeoutMs'> &
  Keyed & {
    onEvent?: (event: FlowEvent) => void
    /** Called with the run's id once the server has taken it: with `deadline_hours` the first event may come hours later. It has none yet where it waits for its place (`wait_secs`). */
    onStart?: (runId: string | undefined) => void
  }

/** The request of `run`. `instance` is sent as `provider_instance`. */
export type FlowRun = Omit<Schema<'FlowRunRequest'>, 'provider_instance'> & { instance: string }

export type Flows = ReturnType<typeof createFlows>

/** Named flows: JSON in, JSON out that fits a schema. */
export const createFlows = (transport: Transport) => ({
  /**
   * Runs a published flow. It is followed as a stream, so that a broken connection loses nothing. Throws `ApiError` when the server
   * refuses it, and `RunFailed` when the flow fails.
   */
  async run<Output = unknown>(
    name: string,
    { instance, ...body }: FlowRun,
    { onEvent, ...options }: FlowRunOptions = {},
  ): Promise<FlowOutcome<Output>> {
    const start = { path: path`/flows/${name}/run`, body: { ...body, provider_instance: instance } }
    const run = new RunStream({ ...options, transport, start, isEnd })
    for await (const read of run) {
      const event = read as unknown as FlowEvent
      onEvent?.(event)
      if (event.event === 'result') {
        return { problems: [], ...event.data, ok: event.data.verdict === 'ok' } as unknown as FlowOutcome<Output>
      }
    }
    throw new RunLost(run.id ?? name)
  },

  ...createReads<Schema<'Flow'>, Schema<'ListedFlow'>>(transport, '/flows', 'name'),
})

/** An `error` without a trace id ends only the stream, not the flow. */
const isEnd: IsEnd = ({ trace_id: traceId }) => traceId !== undefined
