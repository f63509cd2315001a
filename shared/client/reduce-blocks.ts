import type { RunEvent, Schema } from './api.ts'
import type { Block, SubagentBlock, ToolBlock } from './run-view.ts'

type Subagent = Schema<'SubagentEventData'>

/** An event of an agent with its fields side by side, as sub-agents' events have them. */
export type AgentEvent = {
  [Name in Subagent['event_type']]: Extract<Subagent, { event_type: Name }>
}[Subagent['event_type']]

/** The blocks of an agent after an event of its own. `at` is the time in milliseconds, where it is known. */
export function reduceBlocks(blocks: readonly Block[], event: AgentEvent, at: number | undefined): readonly Block[] {
  switch (event.event_type) {
    case 'text_delta':
    case 'thinking_delta':
      return addText(blocks, event.event_type === 'text_delta' ? 'text' : 'thinking', event.text)
    case 'text':
    case 'thinking':
      return closeText(blocks, event.event_type, event.text)
    case 'tool_use': {
      const call = { kind: 'tool', id: event.id, toolName: event.tool_name, input: event.input } as const
      return [...blocks, at === undefined ? call : { ...call, startedAt: at }]
    }
    case 'tool_progress':
      return changeTool(blocks, event.id, { progress: { progress: event.progress, detail: event.detail } }, undefined)
    case 'tool_result':
      return changeTool(blocks, event.id, { output: event.output, isError: event.is_error }, at)
    case 'permission_resolved':
      return event.input ? changeTool(blocks, event.tool_use_id, { input: event.input }, undefined) : blocks
    case 'permission_request':
    case 'turn_start':
    case 'turn_end':
    case 'warning':
    case 'done':
    case 'error':
      return blocks
  }
}

/** The blocks with a sub-agent changed, wherever in the tree it stands. */
export function changeSubagent(
  blocks: readonly Block[],
  id: string,
  change: (block: SubagentBlock) => SubagentBlock,
): readonly Block[] {
  for (const [i, block] of blocks.entries()) {
    if (block.kind !== 'subagent') continue
    const changed = block.id === id ? change(block) : changeInside(block, id, change)
    if (changed !== block) return blocks.with(i, changed)
  }
  return blocks
}

function changeInside(
  block: SubagentBlock,
  id: string,
  change: (block: SubagentBlock) => SubagentBlock,
): SubagentBlock {
  const blocks = changeSubagent(block.blocks, id, change)
  return blocks === block.blocks ? block : { ...block, blocks }
}

/** The blocks of the whole run with a sub-agent that begins, in those of its parent. */
export function addSubagent(blocks: readonly Block[], data: Schema<'SubagentStartData'>): readonly Block[] {
  const { subagent_id: id, parent_subagent_id: parent, description, model, start_time_ms: startedAt } = data
  const begun: SubagentBlock = {
    kind: 'subagent',
    id,
    status: 'running',
    startedAt,
    blocks: [],
    ...(description !== undefined && { description }),
    ...(model !== undefined && { model }),
  }
  if (parent === undefined) return [...blocks, begun]
  return changeSubagent(blocks, parent, (block) => ({ ...block, blocks: [...block.blocks, begun] }))
}

function addText(blocks: readonly Block[], kind: 'text' | 'thinking', text: string): readonly Block[] {
  const last = blocks.at(-1)
  if (last?.kind !== kind || !last.isOpen) return [...blocks, { kind, text, isOpen: true }]
  return [...blocks.slice(0, -1), { kind, text: last.text + text, isOpen: true }]
}

/** A recorded run has no increments, so the whole block may be the first of it. */
function closeText(blocks: readonly Block[], kind: 'text' | 'thinking', text: string): readonly Block[] {
  const last = blocks.at(-1)
  const whole: Block = { kind, text, isOpen: false }
  return last?.kind === kind && last.isOpen ? [...blocks.slice(0, -1), whole] : [...blocks, whole]
}

function changeTool(
  blocks: readonly Block[],
  id: string,
  change: Partial<ToolBlock>,
  endedAt: number | undefined,
): readonly Block[] {
  const i = blocks.findLastIndex((block) => block.kind === 'tool' && block.id === id)
  const block = blocks[i]
  if (block?.kind !== 'tool') return blocks
  const isTimed = endedAt !== undefined && block.startedAt !== undefined
  return blocks.with(i, { ...block, ...change, ...(isTimed && { durationMs: endedAt - (block.startedAt ?? endedAt) }) })
}

/** An event of the run itself in the form of a sub-agent's. */
export const asAgentEvent = ({ event, data }: RunEvent): AgentEvent =>
  ({ ...(data as object), event_type: event, subagent_id: '' }) as unknown as AgentEvent
