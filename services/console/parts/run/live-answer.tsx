import { placeText } from '../../../../shared/reading/place-text.ts'
import { hrefOf } from '../../base/router.ts'
import { lazy } from '../lazy.tsx'
import { Notice } from '../notice.tsx'
import { StateBadge } from '../state-badge.tsx'
import { BlockList } from './block-list.tsx'
import type { LiveRun } from './live-run.ts'

const FailedTurn = lazy(() => import('./failed-turn.tsx').then((loaded) => loaded.FailedTurn))

type LiveAnswerProps = {
  live: LiveRun
  sessionId: string
  /** Where it is a message that can be sent again. */
  onRetry?: (() => void) | undefined
  /** Set if the reason of a failure is shown elsewhere on the page. */
  hasCause?: boolean
}

/** A followed run: its content so far, and its end. */
export function LiveAnswer({ live, sessionId, onRetry, hasCause = false }: LiveAnswerProps) {
  const { blocks, permissions, end, warnings, ...view } = live.view.value
  const waiting = view.lastEventId === 0 && view.waiting
  const unread = live.told.value.filter(({ id }) => !blocks.some((each) => each.kind === 'steered' && each.id === id))
  return (
    <>
      <BlockList blocks={[...blocks, ...unread]} permissions={permissions} sessionId={sessionId} />
      {unread.length > 0 && (
        <p class="soft small told">
          {end ? 'The run ended before its model read it. It stays in the conversation.' : 'Its model reads it next.'}
        </p>
      )}
      {warnings.map((warning, i) => (
        <p key={i} class="soft small">
          {warning.message}
        </p>
      ))}
      {blocks.length + unread.length === 0 && !live.isOver && (
        <StateBadge state={waiting ? 'waiting' : 'running'} word={waiting ? placeText(waiting) : 'Working'} />
      )}
      {live.problem.value && <Notice tone="bad">{live.problem.value.message}</Notice>}
      {end?.event === 'error' && !hasCause && <FailedTurn {...end.data} runId={onRetry && live.id} onRetry={onRetry} />}
      {end?.event === 'plan_queued' && <Queued {...end.data} />}
    </>
  )
}

const Queued = (queued: { plan_id: string } | { note: string }) => (
  <Notice>
    {'plan_id' in queued ? (
      <a href={hrefOf(`/plans/${queued.plan_id}`)}>The plan is queued: see its steps.</a>
    ) : (
      queued.note
    )}
  </Notice>
)
