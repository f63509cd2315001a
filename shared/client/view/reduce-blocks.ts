import type { Schema } from '../api.ts'
import type { Block, SubagentBlock, TextBlock, ToolBlock } from './run-view.ts'

/** An event of an agent: the run's own, or one inside a `subagent_event`. */
export type AgentEvent = { event: string; data: object }

/** The blocks of an agent after one of its events. `at` is the time in milliseconds, if known. */
export function reduceBlocks(blocks: readonly Block[], { event, data }: AgentEvent, at?: number): readonly Block[] {
  switch (event) {
    case 'text_delta':
    case 'thinking_delta':
      return addText(blocks, event === 'text_delta' ? 'text' : 'thinking', data as Schema<'TextData'>)
    case 'text':
    case 'thinking':
      return closeText(blocks, event, data as Schema<'TextData'>)
    case 'steered':
    case 'artifact':
      return [...blocks, { kind: event, ...data } as Block]
    case 'tool_use':
      return [...blocks, { kind: 'tool', call: data as Schema<'ToolUseData'>, startedAt: at }]
    case 'tool_progress': {
      const progress = data as Schema<'ToolProgressData'>
      return changeTool(blocks, progress.id, (block) => ({ ...block, progress }))
    }
    case 'tool_result': {
      const result = data as Schema<'ToolResultData'>
      return changeTool(blocks, result.id, (block) => ({ ...block, result, ...durationOf(block, at) }))
    }
    case 'permission_resolved': {
      const { tool_use_id, input } = data as Schema<'PermissionResolvedData'>
      return changeTool(blocks, tool_use_id, (block) => (input ? { ...block, call: { ...block.call, input } } : block))
    }
    default:
      return blocks
  }
}

/** The blocks with one sub-agent changed, wherever it is in the tree. */
export function changeSubagent(
  blocks: readonly Block[],
  id: string | undefined,
  change: (block: SubagentBlock) => SubagentBlock,
): readonly Block[] {
  for (const [i, block] of blocks.entries()) {
    if (block.kind !== 'subagent') continue
    if (block.start.subagent_id === id) return blocks.with(i, change(block))
    const inside = changeSubagent(block.blocks, id, change)
    if (inside !== block.blocks) return blocks.with(i, { ...block, blocks: inside })
  }
  return blocks
}

/** The blocks of the whole run, with a new sub-agent added to those of its parent. */
export function addSubagent(blocks: readonly Block[], start: Schema<'SubagentStartData'>): readonly Block[] {
  const begun: SubagentBlock = { kind: 'subagent', start, blocks: [] }
  const parent = start.parent_subagent_id
  if (parent === undefined) return [...blocks, begun]
  return changeSubagent(blocks, parent, (block) => ({ ...block, blocks: [...block.blocks, begun] }))
}

type Kind = TextBlock['kind']

function addText(blocks: readonly Block[], kind: Kind, { text }: Schema<'TextData'>): readonly Block[] {
  const open = openBlock(blocks, kind)
  return [...without(blocks, open), { kind, text: (open?.text ?? '') + text, isOpen: true }]
}

/** A recorded run has no deltas, so the event with the whole block may be its first one. */
const closeText = (blocks: readonly Block[], kind: Kind, { text }: Schema<'TextData'>): readonly Block[] => [
  ...without(blocks, openBlock(blocks, kind)),
  { kind, text, isOpen: false },
]

function openBlock(blocks: readonly Block[], kind: Kind): TextBlock | undefined {
  const last = blocks.at(-1)
  return last?.kind === kind && last.isOpen ? last : undefined
}

const without = (blocks: readonly Block[], last: Block | undefined): readonly Block[] =>
  last ? blocks.slice(0, -1) : blocks

function changeTool(blocks: readonly Block[], id: string, change: (block: ToolBlock) => ToolBlock): readonly Block[] {
  const i = blocks.findLastIndex((block) => block.kind === 'tool' && block.call.id === id)
  return i < 0 ? blocks : blocks.with(i, change(blocks[i] as ToolBlock))
}

const durationOf = ({ startedAt }: ToolBlock, at: number | undefined): { durationMs?: number } =>
  at === undefined || startedAt === undefined ? {} : { durationMs: at - startedAt }
