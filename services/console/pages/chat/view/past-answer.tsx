import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { lazy } from '../../../parts/lazy.tsx'
import { BlockList } from '../../../parts/run/block-list.tsx'
import { LiveAnswer } from '../../../parts/run/live-answer.tsx'
import { useLiveRun } from '../../../parts/run/use-live-run.ts'
import type { Exchange } from '../model/exchange.ts'

const FailedTurn = lazy(() => import('../../../parts/run/failed-turn.tsx').then((loaded) => loaded.FailedTurn))

type PastAnswerProps = { exchange: Exchange; sessionId: string; onRetry(): void }

/**
 * An answer of the history that may include work of sub-agents, or that ended with an error. The work of the sub-agents and the message of the
 * failure are only in the events of its run, which are read when the answer becomes visible. If they are not kept, the history is shown.
 */
export function PastAnswer(props: PastAnswerProps) {
  const { exchange, sessionId, onRetry } = props
  const { runId, blocks, code } = exchange
  const mark = useRef<HTMLSpanElement>(null)
  const isSeen = useSignal(false)
  useEffect(() => {
    const observer = new IntersectionObserver((seen) => {
      if (seen.some(({ isIntersecting }) => isIntersecting)) isSeen.value = true
    })
    if (mark.current) observer.observe(mark.current)
    return () => observer.disconnect()
  }, [])
  const history = (
    <>
      <BlockList blocks={blocks} permissions={[]} sessionId={sessionId} />
      {code !== undefined && <FailedTurn code={code} runId={runId} onRetry={onRetry} />}
    </>
  )
  if (isSeen.value && runId !== undefined) return <Replayed {...props} runId={runId} before={history} />
  return (
    <>
      <span ref={mark} class="visually-hidden" />
      {history}
    </>
  )
}

type ReplayedProps = PastAnswerProps & { runId: string; before: preact.JSX.Element }

function Replayed({ runId, sessionId, before, onRetry }: ReplayedProps) {
  const live = useLiveRun({ runId, sessionId, isOver: true })
  return live.view.value.end ? <LiveAnswer live={live} sessionId={sessionId} onRetry={onRetry} /> : before
}
