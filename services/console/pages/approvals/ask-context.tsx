import type { Schema } from '../../../../shared/client/api.ts'
import { get } from '../../api/engine.ts'
import type { Ask } from '../../api/pending.ts'
import { useResource } from '../../api/resource.ts'
import { shortId } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Line } from '../../parts/foreign.tsx'
import { Ago } from '../../parts/time.tsx'

/** The caller and the prompt of the run that asks, and a link to its conversation. */
export function AskContext({ ask }: { ask: Pick<Ask, 'run_id' | 'session_id' | 'created_at'> }) {
  const run = useResource(ask.run_id, () => get<Schema<'Run'>>(`/runs/${ask.run_id}`)).state.value.data
  const isOfSession = ask.session_id !== ask.run_id
  return (
    <dl class="facts">
      {run?.title !== undefined && (
        <>
          <dt>Asked for</dt>
          <dd>
            <Line text={run.title} />
          </dd>
        </>
      )}
      {run?.subject !== undefined && (
        <>
          <dt>Started by</dt>
          <dd>{run.subject}</dd>
        </>
      )}
      <dt>{isOfSession ? 'Session' : 'Run'}</dt>
      <dd>
        {isOfSession ? (
          <a href={hrefOf(`/chat/${encodeURIComponent(ask.session_id)}`)}>{shortId(ask.session_id)}</a>
        ) : (
          shortId(ask.run_id)
        )}
        , <Ago at={ask.created_at} />
      </dd>
    </dl>
  )
}
