import type { Schema } from '../../../../shared/client/api.ts'
import { may } from '../../api/caller.ts'
import { get, send } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { hrefOf } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { nameOf } from '../../parts/run-facts.ts'
import { StateBadge } from '../../parts/state-badge.tsx'
import { RunFacts } from './run-facts.tsx'
import { RunFiles } from './run-files.tsx'
import { RunStory } from './run-story.tsx'
import { Waterfall } from './waterfall.tsx'
import './activity.css'

type Run = Schema<'Run'>

/** One run: how it went, what it used, and everything that it has said and done. */
export function RunPage({ id }: { id: string }) {
  const run = useResource(
    id,
    () => get<Run>(`/runs/${encodeURIComponent(id)}`),
    ({ data }) => data['run_id'] === id,
  )
  return (
    <div class="page">
      <a class="button plain back-link" href={hrefOf('/activity')}>
        <Icon name="back" /> Activity
      </a>
      <Loaded from={run}>
        {(data) => (
          <>
            <Head run={data} />
            <Waterfall run={data} />
            <div class="run-page">
              <div class="stack">
                <section class="card padded stack" aria-label="Facts">
                  <RunFacts run={data} />
                </section>
                <RunFiles run={data} />
              </div>
              <RunStory run={data} onStep={run.want} />
            </div>
          </>
        )}
      </Loaded>
    </div>
  )
}

function Head({ run }: { run: Run }) {
  const cancel = () => send('DELETE', `/runs/${run.run_id}`).then(() => tell('The run is cancelled'), tellFailure)
  return (
    <div class="page-head">
      <StateBadge state={run.status} />
      <h2 class="grow" title={nameOf(run)}>
        {nameOf(run)}
      </h2>
      {run.ended_at === null && may('run') && (
        <button type="button" class="button danger" onClick={() => void cancel()}>
          Cancel this run
        </button>
      )}
      <CopyAs method="GET" path={`/runs/${run.run_id}`} />
    </div>
  )
}
