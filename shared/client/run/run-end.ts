import type { RunEvent, Schema } from '../api.ts'
import { RunFailed } from '../errors.ts'
import type { Meaning } from '../http/follow.ts'
import type { SseEvent } from '../http/sse.ts'

/** The end of a good run. `output` is its text, blocks of it with a blank line between them. */
export type RunResult = {
  runId: string
  output: string
  /** Null when the run ended with its plan in the queue. */
  usage: Schema<'DoneData'> | null
  stopReason: Schema<'DoneData'>['stop_reason'] | 'plan_queued'
  planId?: string
  note?: string
}

/** The events that end a run: those of agents first, then those of flows and plans. */
export const LAST: ReadonlySet<string> = new Set(['done', 'error', 'plan_queued', 'result', 'plan_ended'])

/** Codes of errors that end one connection while the run goes on, when they repeat the number of the last event. */
const CONNECTION_CODES: ReadonlySet<string> = new Set([
  'worker_draining',
  'relay_unavailable',
  'slow_consumer',
  'stream_gap',
  'internal',
])

/** A second one of these in a row is the end: the next events are gone, or the server cannot read them. */
const FINAL_WHEN_REPEATED: ReadonlySet<string> = new Set(['stream_gap', 'internal'])

/** Tells what the events of one run mean for its reader. */
export function createMeaning(): (event: SseEvent, last: string | undefined) => Meaning {
  let broken = ''
  return ({ id, event, data }, last) => {
    const isRepeated = Number(id) <= Number(last ?? 0)
    if (!isRepeated) broken = ''
    else if (event !== 'error') return 'known'
    const { code } = event === 'error' ? (JSON.parse(data) as Schema<'ErrorData'>) : { code: '' }
    if (!isRepeated || !CONNECTION_CODES.has(code)) return LAST.has(event) ? 'last' : 'next'
    const isFinal = FINAL_WHEN_REPEATED.has(code) && broken === code
    broken = code
    return isFinal ? 'last' : 'broken'
  }
}

/** Throws `RunFailed` for a run that has failed. */
export function resultOf(runId: string, output: string, end: RunEvent | undefined): RunResult {
  if (end?.event === 'done') return { runId, output, usage: end.data, stopReason: end.data.stop_reason }
  if (end?.event === 'error') throw new RunFailed(end.data, runId)
  const { plan_id: planId, note } = (end?.data ?? {}) as { plan_id?: string; note?: string }
  return { runId, output, usage: null, stopReason: 'plan_queued', ...(planId && { planId }), ...(note && { note }) }
}

/** The last event of a run of which only the record is left. */
export function endOfRecord(run: Schema<'Run'>, id: number): RunEvent {
  if (run.status === 'done') return { id, event: 'done', data: doneOf(run) }
  const code = (run.code ?? 'internal') as Schema<'RunErrorCode'>
  const suggestion = 'Send the request again.'
  return {
    id,
    event: 'error',
    data: { error: `the run has ended: ${code}`, code, detail: '', suggestion, retryable: false },
  }
}

function doneOf({ input_tokens = 0, output_tokens = 0, cost_usd = 0, turns = 0 }: Schema<'Run'>): Schema<'DoneData'> {
  return {
    total_input_tokens: input_tokens,
    total_output_tokens: output_tokens,
    total_tokens: input_tokens + output_tokens,
    cost_usd,
    turn_count: turns,
    stop_reason: 'end_turn',
  }
}
