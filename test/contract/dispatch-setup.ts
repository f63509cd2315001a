import { newTraceId } from '../../shared/kernel/ids.ts'
import type { Dispatch, DispatchEnd, DispatchOutput } from '../../shared/work/flows/port.ts'

/** The tests' clock begins at the real time, by which MongoDB deletes expired documents. */
export const START = Date.now()
export const DAY_MS = 86_400_000

/** A queued dispatch of the flow `summarize`, started at `startedMs`, kept for 30 days. */
export function newDispatch(startedMs: number, more: Partial<Dispatch> = {}): Dispatch {
  return {
    trace_id: newTraceId(),
    kind: 'run',
    subject: 'anna',
    flow: { name: 'summarize', uid: 'flow_1', version: 3 },
    provider_instance: 'main',
    model: 'm1',
    fallback: { instance: 'other', model: 'm2' },
    served_instance: null,
    idempotency_key: null,
    status: 'queued',
    error: null,
    started_at: new Date(startedMs).toISOString(),
    ended_at: null,
    duration_ms: null,
    turns: 0,
    input_tokens: 0,
    output_tokens: 0,
    cost_usd: 0,
    executor: null,
    keeps_payloads: true,
    expires_at: new Date(startedMs + 30 * DAY_MS).toISOString(),
    ...more,
  }
}

export const OK: DispatchEnd = {
  status: 'ok',
  served_instance: 'main',
  error: null,
  turns: 2,
  input_tokens: 100,
  output_tokens: 20,
  cost_usd: 0.25,
}

export const FAILED: DispatchEnd = {
  ...OK,
  status: 'error',
  served_instance: null,
  error: { status: 502, type: 'upstream_error', message: 'the main agent failed', code: 'provider_auth' },
}

export const INPUT = { text: 'a long text', $where: { 'a.b': 1 } }

export const OUTPUT: DispatchOutput = {
  raw_output: '{"summary":"short"}',
  output: { summary: 'short' },
  timeline: [
    { event: 'started', at: new Date(START + 100).toISOString(), data: { trace_id: 'trace_1' } },
    { event: 'progress', at: new Date(START + 700).toISOString(), data: { agent: 'main', turn_number: 1 } },
  ],
}
