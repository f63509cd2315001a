import type { Schema } from '../../../../shared/client/api.ts'
import { hrefOf } from '../../base/router.ts'
import { Notice } from '../../parts/notice.tsx'
import { FailedTurn } from '../../parts/run/failed-turn.tsx'
import type { LiveRun } from '../../parts/run/live-run.ts'
import { canStartAgain } from './again.ts'
import { runAgain } from './again-actions.tsx'

type Run = Schema<'Run'>

/** Shown first: why a run has failed and what helps, or what it waits for. */
export function RunCause({ run, live }: { run: Run; live: LiveRun }) {
  if (run.status === 'waiting') return <Waits run={run} />
  if (run.status !== 'failed' || run.code === undefined) return null
  const end = live.view.value.end
  const said = end?.event === 'error' ? end.data : { suggestion: NEXT[run.code] ?? 'Open its events below for more.' }
  return (
    <section aria-label="Why it failed">
      <FailedTurn {...said} code={run.code} onRetry={canStartAgain(run) ? () => void runAgain(run) : undefined}>
        <a class="button" href={hrefOf('/activity', { code: run.code })}>
          Others that ended so
        </a>
      </FailedTurn>
    </section>
  )
}

/** What the reader can do next, if the server's message is not kept. */
const NEXT: Readonly<Record<string, string>> = {
  provider_auth: 'Check the key of the provider in Settings.',
  provider_rate_limited: 'Wait a moment and run it again, or raise the limit at the provider.',
  provider_unavailable: 'Run it again; if it keeps failing, check the address of the provider and its status page.',
  provider_rejected: 'Check the name of the model and the request: the provider rejects it as it is.',
  context_too_long: 'Shorten the prompt, or begin a new conversation.',
  content_filtered: 'Change the prompt.',
  unsupported_attachment: 'Send it without the file, or to a model that takes it.',
  max_turns_exceeded: 'Ask for less in one prompt, or raise max_turns.',
  invalid_output: 'Ask for less in one prompt, or simplify the schema.',
  budget_exhausted: 'Wait until the budget begins anew, or raise it in Settings.',
  no_room: 'Run it again later, or raise the number of runs in Settings.',
  plan_failed: 'Open the plan: the step that failed says why, and can be retried.',
  worker_lost: 'Run it again: nothing is known of what it had done.',
  worker_draining: 'Run it again: another process takes it.',
  storage_unavailable: 'Run it again when the store is back.',
  timeout: 'Run it again; a smaller request may be answered in time.',
}

function Waits({ run }: { run: Run }) {
  const { permission_ids: asks = [] } = run
  const [ask] = asks
  if (ask === undefined) return null
  return (
    <Notice tone="warn">
      <div class="row">
        <strong class="grow">
          It waits for {asks.length === 1 ? 'your answer' : `${asks.length} answers`} to a permission request.
        </strong>
        <a class="button main" href={hrefOf(`/approvals/${ask}`)}>
          Review
        </a>
      </div>
    </Notice>
  )
}
