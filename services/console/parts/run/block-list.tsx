import type { Block, PermissionView, SubagentBlock, TextBlock } from '../../../../shared/client/view/run-view.ts'
import { duration } from '../../base/format.ts'
import { Line } from '../foreign.tsx'
import { Icon } from '../icon.tsx'
import { lazy } from '../lazy.tsx'
import { memo } from '../memo.ts'
import { StateBadge } from '../state-badge.tsx'
import { ToolCard } from './tool-card.tsx'
import './run.css'

const Artifact = lazy(() => import('./artifact.tsx').then((loaded) => loaded.Artifact))
const Markdown = lazy<{ text: string; isOpen: boolean }>(
  () => import('../markdown/markdown.tsx').then((loaded) => loaded.Markdown),
  ({ text }) => <p>{text}</p>,
)

type BlockListProps = { blocks: readonly Block[]; permissions: readonly PermissionView[]; sessionId: string }

/** The texts and tool calls of an agent, in order. */
export const BlockList = ({ blocks, permissions, sessionId }: BlockListProps) => (
  <>
    {blocks.map((block, i) => {
      if (block.kind === 'subagent')
        return <Subagent key={i} block={block} permissions={permissions} sessionId={sessionId} />
      if (block.kind === 'tool')
        return (
          <ToolCard
            key={i}
            block={block}
            permission={permissions.find(({ request }) => request.tool_use_id === block.call.id)}
            sessionId={sessionId}
          />
        )
      if (block.kind === 'artifact') return <Artifact key={i} file={block} />
      if (block.kind === 'steered') return <Steered key={i} text={block.text} by={block.by} />
      return block.kind === 'text' ? <Text key={i} block={block} /> : <Thinking key={i} block={block} />
    })}
  </>
)

const Text = memo(({ block }: { block: TextBlock }) => (
  <div class="answer">
    <Markdown text={block.text} isOpen={block.isOpen} />
  </div>
))

/** A steering text that a person sent while the run worked. */
const Steered = memo(({ text, by }: { text: string; by?: string | undefined }) => (
  <div class="steered" title={by === undefined ? undefined : `Told by ${by}`}>
    <span class="visually-hidden">Told while it was at work:</span> {text}
  </div>
))

const Thinking = memo(({ block }: { block: TextBlock }) => (
  <details class="thinking">
    <summary>
      <Icon name="right" />
      {block.isOpen ? 'Thinking …' : 'Thought'}
    </summary>
    <div class="text">{block.text}</div>
  </details>
))

type SubagentProps = { block: SubagentBlock; permissions: readonly PermissionView[]; sessionId: string }

/** A sub-agent has a card of its own, and its own sub-agents are shown inside it. */
const Subagent = memo(({ block: { start, end, blocks }, permissions, sessionId }: SubagentProps) => (
  <details class="subagent card" open={!end}>
    <summary>
      <Icon name="agent" />
      <strong class="grow cut">
        <Line text={start.description ?? 'Sub-agent'} />
      </strong>
      {end && <span class="small soft number">{duration(end.duration_ms)}</span>}
      <StateBadge state={end?.status ?? 'running'} />
    </summary>
    <div class="inner">
      <BlockList blocks={blocks} permissions={permissions} sessionId={sessionId} />
      {end?.error !== undefined && <p class="problem">{end.error}</p>}
    </div>
  </details>
))
