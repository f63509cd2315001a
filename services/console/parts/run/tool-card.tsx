import { computed, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { PermissionView, ToolBlock } from '../../../../shared/client/view/run-view.ts'
import { type Ask, asks } from '../../api/pending.ts'
import { bytes, duration } from '../../base/format.ts'
import { AskCard } from '../ask/ask-card.tsx'
import { Overtaken } from '../ask/overtaken.tsx'
import { Line } from '../foreign.tsx'
import { Icon } from '../icon.tsx'
import { Json } from '../json.tsx'
import { memo } from '../memo.ts'
import { StateBadge } from '../state-badge.tsx'
import { Countdown } from '../time.tsx'

type ToolCardProps = { block: ToolBlock; permission: PermissionView | undefined; sessionId: string }

/** A call of a tool as one line that unfolds, or the permission that it waits for. */
export const ToolCard = memo(({ block, permission, sessionId }: ToolCardProps) => {
  const isOpen = useSignal(false)
  const found = useMemo(() => computed(() => askFor(block.call.id, sessionId)), [block.call.id, sessionId])
  const ask = found.value // The card is drawn again only when its own request changes.
  const isDecided = permission?.state === 'allowed' || permission?.state === 'denied'
  if (ask && !isDecided) return <AskCard key={ask.id} ask={ask} />
  return (
    <>
      <details class="tool card" onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
        <summary>
          <Icon name="tool" />
          <strong>
            <Line text={block.call.tool_name} />
          </strong>
          <span class="grow cut soft mono">
            <Line text={firstValue(block.call.input)} />
          </span>
          {block.durationMs !== undefined && <span class="small soft number">{duration(block.durationMs)}</span>}
          <StateBadge state={stateOf(block, permission, ask !== undefined)} />
        </summary>
        {isOpen.value && <Details block={block} permission={permission} />}
      </details>
      {!block.result && block.progress && <Progress {...block.progress} />}
      {!block.result && block.call.expires_at && (
        <p class="small soft">
          Waits for the caller’s tool <Line text={block.call.tool_name} />, which the program that started this run
          answers. Time left: <Countdown until={block.call.expires_at} />
        </p>
      )}
      {permission?.resolution && <Overtaken id={permission.request.id} decided={permission.resolution} />}
    </>
  )
})

const askFor = (toolUseId: string, sessionId: string): Ask | undefined =>
  asks().value.find(({ tool_use_id, session_id }) => tool_use_id === toolUseId && session_id === sessionId)

function stateOf({ call, result }: ToolBlock, permission: PermissionView | undefined, isAsking: boolean): string {
  if (permission?.state === 'denied') return 'denied'
  if (result) return result.is_error ? 'failed' : 'done'
  return isAsking || permission?.state === 'pending' || call.expires_at ? 'waiting' : 'running'
}

/** The value of the input that says most: a path, a command, a question. */
function firstValue(input: ToolBlock['call']['input']): string {
  const texts = Object.values(input).filter((value) => typeof value === 'string')
  const size = texts.length > 1 ? ` · ${bytes(new Blob(texts.slice(1)).size)}` : ''
  return (texts[0]?.split('\n')[0] ?? '') + size
}

/** The rest of an output is shown after a click. */
const SHOWN_CHARS = 8_000

type DetailsProps = { block: ToolBlock; permission: PermissionView | undefined }

function Details({ block: { call, result }, permission }: DetailsProps) {
  const decided = permission?.resolution
  return (
    <div class="inner">
      <h3>Input</h3>
      <Json value={decided?.input ?? call.input} />
      {decided?.by !== undefined && (
        <p class="small soft">
          {decided.allow ? 'Allowed' : 'Denied'} by {decided.by}
          {decided.input && ', with changes'}
          {decided.reason && `: ${decided.reason}`}
        </p>
      )}
      {result && <Output {...result} />}
    </div>
  )
}

function Output({ output, is_error }: NonNullable<ToolBlock['result']>) {
  const isWhole = useSignal(false)
  const isCut = output.length > SHOWN_CHARS && !isWhole.value
  return (
    <>
      <h3>{is_error ? 'Error' : 'Output'}</h3>
      <pre class="code">{isCut ? output.slice(0, SHOWN_CHARS) : output}</pre>
      {isCut && (
        <button type="button" class="button" onClick={() => (isWhole.value = true)}>
          Show all {bytes(output.length)}
        </button>
      )}
    </>
  )
}

const Progress = ({ progress, detail }: { progress: number; detail: string }) => (
  <p class="small soft progress">
    {progress > 0 && progress <= 1 && `${Math.round(progress * 100)} % `}
    {detail}
  </p>
)
