import type { SessionSummary } from '../../shared/cluster/commands/sessions.ts'

/** A session without messages. */
export const sessionOf = (id = 's-1', fields: Partial<SessionSummary> = {}): SessionSummary => ({
  session_id: id,
  created_at: '2026-11-22T09:30:00.000Z',
  message_count: 0,
  title: null,
  last_message_at: null,
  active_run_id: null,
  queued: 0,
  model: null,
  usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0, turns: 0 },
  remembered: [],
  ...fields,
})
