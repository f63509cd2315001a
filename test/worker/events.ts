import type { AgentEvent } from '../../shared/kernel/events.ts'

/** The end of a good run that has cost nothing. */
export const DONE: AgentEvent = {
  type: 'done',
  total_input_tokens: 0,
  total_output_tokens: 0,
  total_tokens: 0,
  cost_usd: 0,
  turn_count: 1,
  stop_reason: 'end_turn',
}
