import { useEffect, useMemo } from 'preact/hooks'
import type { RunEvent } from '../../../../shared/client/api.ts'
import { createRuns } from '../../../../shared/client/resources/runs.ts'
import { transport } from '../../api/engine.ts'
import { learnAsks } from './learn-asks.ts'
import { LiveRun } from './live-run.ts'

type Followed = { runId: string; sessionId: string; isOver: boolean; onEvent?(event: RunEvent): unknown }

/** While the component is shown, follows a running run, or reads the kept events of an ended one. */
export function useLiveRun({ runId, sessionId, isOver, onEvent }: Followed): LiveRun {
  const [live, abort] = useMemo(() => {
    const controller = new AbortController()
    const note = (event: RunEvent) => {
      if (!isOver) learnAsks(event, runId, sessionId)
      onEvent?.(event)
    }
    const stream = createRuns(transport()).resume(runId, { signal: controller.signal })
    return [new LiveRun(stream, note, isOver), controller]
  }, [runId])
  useEffect(() => {
    void live.follow().then(() => isOver || live.announceEnd())
    return () => abort.abort()
  }, [live])
  return live
}
