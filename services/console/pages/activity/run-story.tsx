import { useSignal } from '@preact/signals'
import type { RunEvent, Schema } from '../../../../shared/client/api.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Empty } from '../../parts/notice.tsx'
import { EventLines } from '../../parts/run/event-lines.tsx'
import { LiveAnswer } from '../../parts/run/live-answer.tsx'
import { useLiveRun } from '../../parts/run/use-live-run.ts'

/** `onStep` is called when a run that goes on has begun or ended something. */
type RunStoryProps = { run: Schema<'Run'>; onStep(): void }

/** The run's texts and tool calls, or its raw events. Runs of flows have events of their own kinds. */
export function RunStory({ run, onStep }: RunStoryProps) {
  const isRaw = useSignal(run.kind === 'flow' || run.kind === 'plan')
  return (
    <section class="card" aria-label="What happened">
      <header>
        <h2 class="grow">What happened</h2>
        <CopyAs method="GET" path={`/runs/${run.run_id}/events`} />
        <button
          type="button"
          class="button plain"
          aria-pressed={isRaw.value}
          onClick={() => (isRaw.value = !isRaw.value)}
        >
          Events
        </button>
      </header>
      <Story key={`${run.run_id} ${run.ended_at === null}`} run={run} isRaw={isRaw.value} onStep={onStep} />
    </section>
  )
}

function Story({ run, isRaw, onStep }: RunStoryProps & { isRaw: boolean }) {
  const sessionId = run.session_id ?? run.run_id
  const isOver = run.ended_at !== null
  const onEvent = ({ event }: RunEvent) => !isOver && !DELTAS.has(event) && onStep()
  const live = useLiveRun({ runId: run.run_id, sessionId, isOver, onEvent })
  if (live.problem.value !== undefined && live.frames.length === 0)
    return (
      <Empty title="Its events are not kept">
        Events of a run are kept while the tenant's audit stores payloads, for as long as its records.
      </Empty>
    )
  return (
    <div class="story">{isRaw ? <EventLines live={live} /> : <LiveAnswer live={live} sessionId={sessionId} />}</div>
  )
}

const DELTAS: ReadonlySet<string> = new Set(['text_delta', 'thinking_delta', 'tool_progress'])
