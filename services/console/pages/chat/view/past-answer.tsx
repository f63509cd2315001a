import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { BlockList } from '../../../parts/run/block-list.tsx'
import { useLiveRun } from '../../../parts/run/use-live-run.ts'
import type { Exchange } from '../model/exchange.ts'

type PastAnswerProps = { exchange: Exchange; sessionId: string }

/**
 * An answer of the history for which sub-agents may have worked. Only the events of its run have what they did: they are read once the answer
 * is seen. Where they are not kept, the history is shown.
 */
export function PastAnswer({ exchange: { runId, blocks }, sessionId }: PastAnswerProps) {
  const mark = useRef<HTMLSpanElement>(null)
  const isSeen = useSignal(false)
  useEffect(() => {
    const observer = new IntersectionObserver((seen) => {
      if (seen.some(({ isIntersecting }) => isIntersecting)) isSeen.value = true
    })
    if (mark.current) observer.observe(mark.current)
    return () => observer.disconnect()
  }, [])
  const history = <BlockList blocks={blocks} permissions={[]} sessionId={sessionId} />
  if (isSeen.value && runId !== undefined) return <Replayed runId={runId} sessionId={sessionId} before={history} />
  return (
    <>
      <span ref={mark} class="visually-hidden" />
      {history}
    </>
  )
}

type ReplayedProps = { runId: string; sessionId: string; before: ReturnType<typeof BlockList> }

function Replayed({ runId, sessionId, before }: ReplayedProps) {
  const live = useLiveRun({ runId, sessionId, isOver: true })
  const { blocks, permissions, end } = live.view.value
  return end ? <BlockList blocks={blocks} permissions={permissions} sessionId={sessionId} /> : before
}
