import type { RunEvent, Schema } from './api.ts'
import { addSubagent, asAgentEvent, changeSubagent, reduceBlocks } from './reduce-blocks.ts'
import { EMPTY_RUN, type PermissionView, type RunEnd, type RunView, type UsageView } from './run-view.ts'

/**
 * The view of a run after one more event. It is pure: an event that was seen before changes nothing, and neither does one behind the
 * end. `at` is the time in milliseconds; without it the view has no durations of tool calls.
 */
export function reduceRun(state: RunView | undefined, event: RunEvent, at?: number): RunView {
  const view = state ?? EMPTY_RUN
  const isKnown = event.id <= view.lastEventId && event.event !== 'error'
  if (view.end || isKnown) return view
  const next = reduceEvent(view, event, at)
  return { ...next, status: statusOf(next), lastEventId: Math.max(event.id, view.lastEventId) }
}

function reduceEvent(view: RunView, event: RunEvent, at: number | undefined): RunView {
  switch (event.event) {
    case 'turn_start':
      return { ...view, turn: event.data.turn_number, model: event.data.model }
    case 'turn_end':
      return { ...view, usage: addTurn(view.usage, event.data) }
    case 'warning':
      return { ...view, warnings: [...view.warnings, event.data] }
    case 'subagent_start':
      return { ...view, blocks: addSubagent(view.blocks, event.data) }
    case 'subagent_event':
      return reduceSubagentEvent(view, event.data, at)
    case 'subagent_end':
      return { ...view, blocks: endSubagent(view, event.data) }
    case 'permission_request':
      return { ...view, permissions: [...view.permissions, permissionOf(event.data, view.askedBy[event.data.id])] }
    case 'done':
    case 'error':
    case 'plan_queued':
      return endRun(view, event)
    case 'permission_resolved':
      return { ...view, permissions: resolve(view.permissions, event.data), blocks: reduceOwn(view, event, at) }
    case 'text_delta':
    case 'text':
    case 'thinking_delta':
    case 'thinking':
    case 'tool_use':
    case 'tool_progress':
    case 'tool_result':
      return { ...view, blocks: reduceOwn(view, event, at) }
  }
}

const reduceOwn = ({ blocks }: RunView, event: RunEvent, at: number | undefined): RunView['blocks'] =>
  reduceBlocks(blocks, asAgentEvent(event), at)

function reduceSubagentEvent(view: RunView, data: Schema<'SubagentEventData'>, at: number | undefined): RunView {
  const id = data.subagent_id
  const blocks = changeSubagent(view.blocks, id, (block) => ({
    ...block,
    blocks: reduceBlocks(block.blocks, data, at),
  }))
  if (data.event_type === 'turn_end') return { ...view, blocks, usage: addTurn(view.usage, data) }
  if (data.event_type === 'warning') return { ...view, blocks, warnings: [...view.warnings, data] }
  if (data.event_type === 'permission_request') return { ...view, blocks, askedBy: { ...view.askedBy, [data.id]: id } }
  return { ...view, blocks }
}

function endSubagent({ blocks }: RunView, data: Schema<'SubagentEndData'>): RunView['blocks'] {
  const { subagent_id, status, duration_ms: durationMs, result, error } = data
  return changeSubagent(blocks, subagent_id, (block) => ({
    ...block,
    status,
    durationMs,
    result,
    ...(error !== undefined && { error }),
  }))
}

function permissionOf(data: Schema<'PermissionRequestData'>, subagentId: string | undefined): PermissionView {
  const { id, tool_name: toolName, tool_use_id: toolUseId, input, message, preview, expires_at: expiresAt } = data
  const optional = { ...(preview && { preview }), ...(subagentId !== undefined && { subagentId }) }
  return { id, toolName, toolUseId, input, message, expiresAt, state: 'pending', ...optional }
}

function resolve(
  permissions: RunView['permissions'],
  { id, allow, how, by, reason }: Schema<'PermissionResolvedData'>,
): RunView['permissions'] {
  const state = allow ? 'allowed' : 'denied'
  const decision = { state, how, reason, ...(by !== undefined && { by }) } as const
  return permissions.map((each) => (each.id === id ? { ...each, ...decision } : each))
}

function endRun(view: RunView, event: Extract<RunEvent, { event: 'done' | 'error' | 'plan_queued' }>): RunView {
  const permissions = view.permissions.map((each) =>
    each.state === 'pending' ? { ...each, state: 'ended' as const } : each,
  )
  return { ...view, permissions, end: endOf(event), usage: usageAtEnd(view.usage, event) }
}

function endOf(event: Extract<RunEvent, { event: 'done' | 'error' | 'plan_queued' }>): RunEnd {
  if (event.event === 'done') return { status: 'done', stopReason: event.data.stop_reason }
  if (event.event === 'error') {
    const { error: message, code, suggestion, retryable } = event.data
    return { status: 'failed', message, code, suggestion, retryable }
  }
  if ('plan_id' in event.data) return { status: 'plan_queued', planId: event.data.plan_id }
  return { status: 'plan_queued', note: event.data.note }
}

function addTurn(usage: UsageView, turn: Schema<'TurnEndData'>): UsageView {
  return {
    inputTokens: usage.inputTokens + turn.input_tokens,
    outputTokens: usage.outputTokens + turn.output_tokens,
    cacheReadTokens: usage.cacheReadTokens + (turn.cache_read_tokens ?? 0),
    costUsd: usage.costUsd + turn.cost_usd,
    turns: usage.turns + 1,
  }
}

/** The totals of the last event, where it has them, count more than the turns that were seen. */
function usageAtEnd(usage: UsageView, { event, data }: RunEvent): UsageView {
  if (event !== 'done' && event !== 'error') return usage
  return {
    inputTokens: data.total_input_tokens ?? usage.inputTokens,
    outputTokens: data.total_output_tokens ?? usage.outputTokens,
    cacheReadTokens: data.cache_read_tokens ?? usage.cacheReadTokens,
    costUsd: data.cost_usd ?? usage.costUsd,
    turns: data.turn_count ?? usage.turns,
  }
}

const statusOf = ({ end, permissions }: RunView): RunView['status'] =>
  end?.status ?? (permissions.some(({ state }) => state === 'pending') ? 'waiting' : 'running')
