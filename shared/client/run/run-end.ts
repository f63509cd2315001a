import type { RunEvent, Schema } from '../api.ts'
import type { IsEnd } from '../http/follow.ts'
import { given } from '../http/transport.ts'

/** The end of a successful run. `output` is its text, with a blank line between blocks, or the value of a run with a schema. */
export type RunResult<T = string> = {
  runId: string
  output: T
  /** Null when the run ended with its plan in the queue. */
  usage: Schema<'DoneData'> | null
  stopReason: Schema<'DoneData'>['stop_reason'] | 'plan_queued'
  planId?: string | undefined
  note?: string | undefined
}

/** Codes that end the run when they come twice in a row: the next events are gone, or the server cannot read them. */
const FINAL_WHEN_REPEATED = ['stream_gap', 'internal']
/** Codes of errors that end only the connection, not the run, if they repeat the number of the last event. */
const CONNECTION_CODES = [...FINAL_WHEN_REPEATED, 'worker_draining', 'relay_unavailable', 'slow_consumer']

/** Whether an `error` is the end of a run. */
export const isEndOfRun: IsEnd = ({ code = '' }, { isKnown, before }) =>
  !isKnown || !CONNECTION_CODES.includes(code) || (before === code && FINAL_WHEN_REPEATED.includes(code))

/** The result of a run that has not failed. */
export function resultOf<T>(runId: string, text: string, { event, data }: RunEvent): RunResult<T> {
  const {
    stop_reason: stopReason = 'plan_queued' as const,
    plan_id: planId,
    note,
    output = text,
  } = data as Partial<EndData>
  return given({ runId, output, usage: event === 'done' ? data : null, stopReason, planId, note }) as RunResult<T>
}

type EndData = Schema<'DoneData'> & { plan_id: string; note: string }

/** The last event of a run, made from its record when its events are no longer kept. */
export function endOfRecord(run: Schema<'Run'>, id: number): RunEvent {
  const { status, code = 'internal', input_tokens = 0, output_tokens = 0, cost_usd = 0, turns = 0 } = run
  if (status !== 'done') return { id, event: 'error', data: endedWith(code as Schema<'RunErrorCode'>) }
  const data: Schema<'DoneData'> = {
    total_input_tokens: input_tokens,
    total_output_tokens: output_tokens,
    total_tokens: input_tokens + output_tokens,
    cost_usd,
    turn_count: turns,
    stop_reason: 'end_turn',
  }
  return { id, event: 'done', data }
}

/** The end of a run whose own `error` was not read. */
export const endedWith = (code: Schema<'RunErrorCode'>): Schema<'ErrorData'> => ({
  error: `the run has ended: ${code}`,
  code,
  detail: '',
  suggestion: 'Send the request again.',
  retryable: false,
})
