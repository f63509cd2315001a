import { ProjectedRun } from '../../../services/gateway/dialects/shared/projected-run.ts'
import type { Part, Projection } from '../../../services/gateway/dialects/shared/projection.ts'
import { type AgentEvent, errorEvent, type JsonObject } from '../../../shared/kernel/events.ts'

export const RUN = `run_${'0123456789abcdef'.repeat(2)}`

export const turn = (number: number): AgentEvent => ({ type: 'turn_start', turn_number: number, model: 'm' })
export const turnEnd = (number: number): AgentEvent => ({
  type: 'turn_end',
  turn_number: number,
  input_tokens: 3,
  output_tokens: 2,
  cost_usd: 0,
})
export const said = (...words: string[]): AgentEvent[] => [
  ...words.map((text): AgentEvent => ({ type: 'text_delta', text })),
  { type: 'text', text: words.join('') },
]
export const thought = (...words: string[]): AgentEvent[] => [
  ...words.map((text): AgentEvent => ({ type: 'thinking_delta', text })),
  { type: 'thinking', text: words.join('') },
]
export const call = (id: string, input: JsonObject = { path: 'a' }): AgentEvent => ({
  type: 'tool_use',
  id,
  tool_name: 'Write',
  input,
})
export const asked = (id: string, tool: string): AgentEvent => ({
  type: 'permission_request',
  id,
  tool_use_id: tool,
  tool_name: 'Write',
  input: { path: 'a' },
  message: `Write for ${tool}?`,
  expires_at: '2026-11-21T09:35:00.000Z',
})
/** What the tool of a call asks a person for while it runs (D40.4). */
export const questioned = (id: string, tool: string): AgentEvent => ({
  ...(asked(id, tool) as Extract<AgentEvent, { type: 'permission_request' }>),
  ...{ message: 'The MCP server git asks: which branch?', input: {} },
  preview: { kind: 'form', schema: { type: 'object', properties: { branch: { type: 'string' } } } },
})
export const resolved = (
  id: string,
  tool: string,
  rest: { allow?: boolean; reason?: string; input?: JsonObject } = {},
): AgentEvent => ({
  type: 'permission_resolved',
  id,
  tool_use_id: tool,
  tool_name: 'Write',
  allow: true,
  how: 'reply',
  reason: '',
  ...rest,
})
export const result = (id: string, output = 'written', isError = false): AgentEvent => ({
  type: 'tool_result',
  id,
  tool_name: 'Write',
  output,
  is_error: isError,
})
export const progress = (id: string): AgentEvent => ({
  type: 'tool_progress',
  id,
  tool_name: 'Write',
  progress: 0.5,
  detail: 'half',
})
export const begun = (id: string, parent?: string): AgentEvent => ({
  type: 'subagent_start',
  subagent_id: id,
  ...(parent !== undefined && { parent_subagent_id: parent }),
  description: 'help',
  start_time_ms: 0,
})
export const within = (id: string, ...events: AgentEvent[]): AgentEvent[] =>
  events.flatMap((event): AgentEvent[] => {
    const { type, ...fields } = event
    const wrapped: AgentEvent = { type: 'subagent_event', subagent_id: id, event_type: type, ...fields }
    const isPermission = type === 'permission_request' || type === 'permission_resolved'
    return isPermission ? [wrapped, event] : [wrapped] // A request and its answer come once more as they are (D4.13).
  })
export const ended = (id: string): AgentEvent => ({
  type: 'subagent_end',
  subagent_id: id,
  duration_ms: 1,
  status: 'completed',
  result: 'helped',
})
export const warned: AgentEvent = { type: 'warning', code: 'context_compacted', message: 'shorter now', detail: {} }
export const failed = errorEvent('provider_rejected', 'the provider said no')
export const lost: AgentEvent = { ...errorEvent('worker_lost', 'the worker is gone'), session_kept: true }
export const cancelled = errorEvent('cancelled', 'the run was cancelled')
export const queued: AgentEvent = { type: 'plan_queued', plan_id: `plan_${'0'.repeat(32)}` }
export const done: AgentEvent = {
  type: 'done',
  total_input_tokens: 6,
  total_output_tokens: 4,
  total_tokens: 10,
  cost_usd: 0.01,
  turn_count: 2,
  stop_reason: 'end_turn',
}

/** The warning that the server of a run has failed, and that this turn begins anew at another one. */
export function beginsAnew(turnNumber: number): AgentEvent {
  return { type: 'warning', code: 'run_recovered', message: 'it begins anew', detail: { turn_number: turnNumber } }
}

/** Two calls that are allowed and whose tools ask something; one answer declines. */
export const WITH_QUESTIONS: AgentEvent[] = [
  ...[turn(1), call('a'), call('b')],
  ...[asked('p', 'a'), resolved('p', 'a', { input: { path: 'b' } })],
  ...[questioned('q', 'a'), resolved('q', 'a', { input: { branch: 'main' } }), result('a', 'pushed')],
  ...[questioned('r', 'b'), resolved('r', 'b', { allow: false }), result('b', 'left out')],
  ...[turnEnd(1), done],
]

/** A run whose server failed within its turn, which begins anew (D32.7a). */
export const RECOVERED: AgentEvent[] = [
  turn(1),
  ...said('I beg').slice(0, -1),
  beginsAnew(1),
  turn(1),
  ...said('I write.'),
  turnEnd(1),
  done,
]

const recovered = beginsAnew(1)

/** The reader of a run lacks the rest of a turn that was complete when its server failed: it gets that without deltas (D32.7a). */
export const REST: AgentEvent[] = [
  turn(1),
  ...said('I re').slice(0, -1),
  beginsAnew(2),
  { type: 'text', text: 'I read.' },
  call('c1'),
  result('c1'),
  turnEnd(1),
  beginsAnew(2),
  turn(2),
  ...said('I write.'),
  turnEnd(2),
  done,
]
/** The same within a call, behind the text. */
export const REST_OF_CALL: AgentEvent[] = [
  turn(1),
  ...said('I read.'),
  call('c1'),
  beginsAnew(2),
  result('c1'),
  turnEnd(1),
  done,
]

/** Two calls of a turn, one of which waits for a permission, and a sub-agent with one of its own, when the server fails. */
const CUT: AgentEvent[] = [
  turn(1),
  ...said('I read.'),
  call('c1'),
  call('c2'),
  asked('perm_1', 'c1'),
  begun('sub_1'),
  ...within('sub_1', turn(1), call('c1')),
  recovered,
  turn(1),
]

/** The model is asked anew, and makes another call, which waits. */
export const CUT_ANEW: AgentEvent[] = [...CUT, call('d1'), asked('perm_2', 'd1')]
/** The model is not asked anew: the calls and the request of the void turn come again, and only the request waits (D32.9a). */
export const CUT_AGAIN: AgentEvent[] = [...CUT, call('c1'), call('c2'), result('c2'), asked('perm_1', 'c1')]

/** A run in which two calls ask at the same time, one of them a sub-agent's, with everything around them. */
export const WITH_SUB_AGENT: AgentEvent[] = [
  turn(1),
  ...thought('h', 'm'),
  ...said('I ', 'write.'),
  call('c1'),
  call('c2', { prompt: 'help' }),
  asked('perm_1', 'c1'),
  begun('sub_1'),
  warned,
  ...within('sub_1', turn(1), ...said('me ', 'too'), call('c1'), asked('perm_2', 'c1')),
  resolved('perm_1', 'c1'),
  progress('c1'),
  result('c1'),
  ...within('sub_1', resolved('perm_2', 'c1', { allow: false }), result('c1', 'denied', true), ...said('no')),
  ended('sub_1'),
  result('c2', 'helped'),
  turnEnd(1),
  turn(2),
  ...said('Bye.'),
  turnEnd(2),
  done,
]

/** The chunks of one response over these events, and how many events it has read. */
export function respond<Chunk>(projection: Projection<Chunk>, events: readonly AgentEvent[], part?: Part) {
  const run = new ProjectedRun(projection, part)
  const chunks = run.begin()
  let read = 0
  for (const event of events) {
    if (run.isOver) break
    chunks.push(...run.take({ seq: ++read, event }))
  }
  return { chunks, read, isOver: run.isOver }
}
