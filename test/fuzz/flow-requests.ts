import type { Fixtures } from './case.ts'
import type { Headers } from './request.ts'

export const INSTANCE = 'model'

const OBJECT = { type: 'object' }

/** A definition that any object fits. */
export const OPEN_FLOW = { input_schema: OBJECT, output_schema: OBJECT, system_prompt_template: 'Answer. {{.memory}}' }

const ALL_FIELDS = {
  ...OPEN_FLOW,
  name: 'other',
  version: 1,
  input_schema: {
    type: 'object',
    properties: { text: { type: 'string', pattern: '^(a|b)+$' }, list: { type: 'array', items: { type: 'integer' } } },
    required: ['text'],
  },
  user_prompt_template: '{{.input.text}} {{.sub_outputs.first.a}}',
  tools: ['Read'],
  model: 'm',
  sub_agents: [{ name: 'first', prompt: 'Look at {{.input.text}}', output_schema: OBJECT, tools: [], model: 'm' }],
  evolve: true,
}
const RUN = { input: { text: 'a' }, provider_instance: INSTANCE, model: 'm' }

/** A valid request; the path has no slash at the start. */
export type Plain = {
  method: string
  path: string
  query?: readonly (readonly [string, string])[]
  headers?: Headers
  body?: unknown
}

/** One valid request for every route of flows and their history. Only the flow of the fixtures is published and run. */
export const flowRequests = ({ flow, trace, entry }: Fixtures): readonly Plain[] => [
  { method: 'GET', path: 'v1/flows', query: [['limit', '2']] },
  { method: 'GET', path: 'v1/flows/tools' },
  { method: 'PUT', path: `v1/flows/${flow}-other`, body: ALL_FIELDS },
  { method: 'PUT', path: `v1/flows/${flow}`, body: OPEN_FLOW },
  { method: 'GET', path: `v1/flows/${flow}` },
  { method: 'GET', path: `v1/flows/${flow}`, headers: { Accept: 'application/yaml' } },
  { method: 'POST', path: `v1/flows/${flow}/check`, body: { ...ALL_FIELDS, input: RUN.input } },
  { method: 'GET', path: `v1/flows/${flow}/evaluations`, query: [['limit', '2']] },
  { method: 'POST', path: `v1/flows/${flow}/publish`, query: [['require_pass_rate', '0.5']] },
  { method: 'GET', path: `v1/flows/${flow}/revisions` },
  { method: 'POST', path: `v1/flows/${flow}/rollback/1` },
  { method: 'GET', path: `v1/flows/${flow}/memory`, query: [['scope', 'corrections']] },
  { method: 'POST', path: `v1/flows/${flow}/memory`, query: [['scope', 's']], body: { content: { a: 'b' } } },
  { method: 'DELETE', path: `v1/flows/${flow}/memory`, query: [['entry_id', entry]] },
  { method: 'POST', path: `v1/flows/${flow}/run`, body: RUN, headers: { 'Idempotency-Key': 'k' } },
  { method: 'POST', path: `v1/flows/${flow}/run`, body: RUN, headers: { Accept: 'text/event-stream' } },
  {
    method: 'POST',
    path: `v1/flows/${flow}/run`,
    body: { ...RUN, fallback_instance: INSTANCE, fallback_model: 'f' },
  },
  { method: 'POST', path: `v1/flows/${flow}/evaluate`, body: { provider_instance: INSTANCE, model: 'm', limit: 1 } },
  { method: 'DELETE', path: `v1/flows/${flow}` },
  {
    method: 'GET',
    path: 'v1/dispatches',
    query: [
      ['flow', flow],
      ['status', 'ok'],
      ['since', '2026-01-01'],
      ['min_ms', '1'],
      ['q', 'a'],
    ],
  },
  { method: 'GET', path: 'v1/dispatches/stats', query: [['bucket', 'hour']] },
  { method: 'GET', path: `v1/dispatches/${trace}` },
  { method: 'GET', path: `v1/dispatches/${trace}/events`, query: [['speed', '100']] },
  { method: 'GET', path: `v1/runs/run_${trace.slice('trace_'.length)}` },
]
