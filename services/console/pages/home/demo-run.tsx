import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { createSessions } from '../../../../shared/client/resources/sessions.ts'
import { caller } from '../../api/caller.ts'
import { transport } from '../../api/engine.ts'
import { hrefOf } from '../../base/router.ts'
import { Notice } from '../../parts/notice.tsx'
import { learnAsks } from '../../parts/run/learn-asks.ts'
import { LiveAnswer } from '../../parts/run/live-answer.tsx'
import { LiveRun } from '../../parts/run/live-run.ts'
import { Prompt } from '../../parts/run/prompt.tsx'
import { startersFor } from '../chat/view/starters.ts'

/** The first run of the demo, shown on this page until it ends. It is a normal conversation, which can be continued in Chat. */
export function DemoRun() {
  const prompt = startersFor(caller().peek()?.model === 'demo')[0]?.prompt ?? ''
  const run = useSignal<{ live: LiveRun; sessionId: string } | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  useEffect(() => {
    const leave = new AbortController()
    start(prompt, leave.signal).then(
      (started) => (run.value = started),
      (cause: unknown) => (problem.value = cause instanceof Error ? cause.message : String(cause)),
    )
    return () => leave.abort()
  }, [])
  const card = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { current } = card
    const observer = new ResizeObserver(() => current?.scrollIntoView({ block: 'end' }))
    if (current) observer.observe(current)
    return () => observer.disconnect()
  }, [])
  return (
    <div ref={card} class="card padded first-run" role="log" aria-label="The first run">
      <Prompt text={prompt} />
      {problem.value !== undefined && <Notice tone="bad">{problem.value}</Notice>}
      {run.value && <LiveAnswer {...run.value} />}
      {run.value?.live.isOver && (
        <a class="button" href={hrefOf(`/chat/${encodeURIComponent(run.value.sessionId)}`)}>
          Go on in Chat
        </a>
      )}
    </div>
  )
}

/** Starts the run. When the reader leaves the page, the run continues but is no longer followed. */
async function start(prompt: string, signal: AbortSignal): Promise<{ live: LiveRun; sessionId: string }> {
  const session = await createSessions(transport()).open()
  const live: LiveRun = new LiveRun(session.send({ prompt }, { signal }), (event) =>
    learnAsks(event, live.id, session.id),
  )
  void live.follow().then(() => live.announceEnd())
  return { live, sessionId: session.id }
}
