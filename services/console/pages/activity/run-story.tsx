import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Empty } from '../../parts/notice.tsx'
import { EventLines } from '../../parts/run/event-lines.tsx'
import { LiveAnswer } from '../../parts/run/live-answer.tsx'
import type { LiveRun } from '../../parts/run/live-run.ts'
import { Prompt } from '../../parts/run/prompt.tsx'

type RunStoryProps = { run: Schema<'Run'>; live: LiveRun }

/** The prompt of the run, its texts and tool calls, or its raw events. Runs of flows have events of their own kinds. */
export function RunStory({ run, live }: RunStoryProps) {
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
      <div class="story">
        {!isRaw.value && run.request && <Prompt text={run.request.prompt} />}
        {live.problem.value !== undefined && live.frames.length === 0 ? (
          <Empty title="Its events are not kept">
            Events of a run are kept while the tenant's audit stores payloads, for as long as its records.
          </Empty>
        ) : isRaw.value ? (
          <EventLines live={live} />
        ) : (
          <LiveAnswer live={live} sessionId={run.session_id ?? run.run_id} hasCause={run.status === 'failed'} />
        )}
      </div>
    </section>
  )
}
