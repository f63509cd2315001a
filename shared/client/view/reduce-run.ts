import type { RunEvent, Schema } from '../api.ts'
import { addSubagent, changeSubagent, reduceBlocks } from './reduce-blocks.ts'
import { EMPTY_RUN, type RunEnd, type RunView, type TurnStart, type UsageView } from './run-view.ts'

/**
 * The view of a run after one more event. It is pure: an event that was seen before changes nothing, and neither does one after the
 * end. `at` is the time in milliseconds; without it the view has no durations of tool calls.
 */
export function reduceRun(view: RunView = EMPTY_RUN, event: RunEvent, at?: number): RunView {
  if (event.event === 'waiting') return { ...view, waiting: event.data }
  const isKnown = event.id <= view.lastEventId && event.event !== 'error'
  if (view.end || isKnown) return view
  const next = { ...view, ...changeOf(view, event, at), lastEventId: Math.max(event.id, view.lastEventId) }
  return { ...next, status: statusOf(next) }
}

function changeOf(view: RunView, event: Begun, at: number | undefined): Partial<RunView> {
  switch (event.event) {
    case 'turn_start':
      return { turn: event.data, turnStarts: [...view.turnStarts, startOf(event.data.turn_number, view)] }
    case 'turn_end':
      return { usage: addTurn(view.usage, event.data) }
    case 'warning':
      return { ...withoutVoid(view, event.data), warnings: [...view.warnings, event.data] }
    case 'subagent_start':
      return { blocks: addSubagent(view.blocks, event.data) }
    case 'subagent_event':
      return changeBySubagent(view, event.data, at)
    case 'subagent_end':
      return { blocks: changeSubagent(view.blocks, event.data.subagent_id, (block) => ({ ...block, end: event.data })) }
    case 'permission_request': {
      const request = { request: event.data, subagentId: view.askedBy[event.data.id], state: 'pending' } as const
      return { permissions: [...view.permissions, request] }
    }
    case 'permission_resolved':
      return {
        permissions: resolve(view.permissions, event.data),
        ...(!isQuestion(view, event.data) && { blocks: reduceBlocks(view.blocks, event, at) }),
      }
    case 'done':
    case 'error':
    case 'plan_queued':
      return { end: event, usage: usageAtEnd(view.usage, event), permissions: view.permissions.map(withoutAnswer) }
    case 'artifact':
    case 'steered':
    case 'text_delta':
    case 'text':
    case 'thinking_delta':
    case 'thinking':
    case 'tool_use':
    case 'tool_progress':
    case 'tool_result':
      return { blocks: reduceBlocks(view.blocks, event, at) }
  }
}

type Begun = Exclude<RunEvent, { event: 'waiting' }>

const startOf = (turn: number, { blocks, permissions, usage }: RunView): TurnStart => ({
  turn,
  before: { blocks, permissions, usage },
})

/** After the failure of its server the run continues with the turn that the warning names: what was shown of that turn is void. */
function withoutVoid({ turnStarts }: RunView, { code, detail }: Schema<'WarningData'>): Partial<RunView> {
  const start = turnStarts.find(({ turn }) => code === 'run_recovered' && turn >= Number(detail['turn_number']))
  return start ? { ...start.before, turnStarts: turnStarts.slice(0, turnStarts.indexOf(start)) } : {}
}

function changeBySubagent(view: RunView, data: Schema<'SubagentEventData'>, at: number | undefined): Partial<RunView> {
  const { subagent_id: id, event_type: event } = data
  if (event === 'turn_end') return { usage: addTurn(view.usage, data) }
  if (event === 'warning') return { warnings: [...view.warnings, data] }
  if (event === 'permission_request') return { askedBy: { ...view.askedBy, [data.id]: id } }
  if (event === 'permission_resolved' && isQuestion(view, data)) return {}
  const change = (blocks: RunView['blocks']) => reduceBlocks(blocks, { event, data }, at)
  return { blocks: changeSubagent(view.blocks, id, (block) => ({ ...block, blocks: change(block.blocks) })) }
}

/** Whether the request was a tool's question, whose answer is not the input of the call (D40.4). */
const isQuestion = ({ permissions }: RunView, { id }: { id: string }): boolean =>
  permissions.some(({ request }) => request.id === id && /form|link/.test(request.preview?.kind ?? ''))

const resolve = (
  permissions: RunView['permissions'],
  resolution: Schema<'PermissionResolvedData'>,
): RunView['permissions'] =>
  permissions.map((each) =>
    each.request.id === resolution.id ? { ...each, resolution, state: resolution.allow ? 'allowed' : 'denied' } : each,
  )

const withoutAnswer = (each: RunView['permissions'][number]): RunView['permissions'][number] =>
  each.state === 'pending' ? { ...each, state: 'ended' } : each

const addTurn = (usage: UsageView, turn: Schema<'TurnEndData'>): UsageView => ({
  input_tokens: usage.input_tokens + turn.input_tokens,
  output_tokens: usage.output_tokens + turn.output_tokens,
  cache_read_tokens: usage.cache_read_tokens + (turn.cache_read_tokens ?? 0),
  cost_usd: usage.cost_usd + turn.cost_usd,
  turn_count: usage.turn_count + 1,
})

/** The totals of the last event, if it has them, replace the sums of the turns that were seen. */
function usageAtEnd(usage: UsageView, { data }: RunEnd): UsageView {
  if (!('total_tokens' in data) || data.total_tokens === undefined) return usage
  const { total_input_tokens, total_output_tokens, cache_read_tokens = 0, cost_usd = 0, turn_count = 0 } = data
  return {
    input_tokens: total_input_tokens ?? 0,
    output_tokens: total_output_tokens ?? 0,
    cache_read_tokens,
    cost_usd,
    turn_count,
  }
}

const ENDS = { done: 'done', error: 'failed', plan_queued: 'plan_queued' } as const

function statusOf({ end, permissions }: RunView): RunView['status'] {
  if (end) return ENDS[end.event]
  return permissions.some(({ state }) => state === 'pending') ? 'waiting' : 'running'
}
