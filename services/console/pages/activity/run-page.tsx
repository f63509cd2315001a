import './activity.css'
import type { ComponentChildren } from 'preact'
import type { RunEvent, Schema, TenantEvent } from '../../../../shared/client/api.ts'
import { may } from '../../api/caller.ts'
import { get, send } from '../../api/engine.ts'
import { useList } from '../../api/list.ts'
import { useResource } from '../../api/resource.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { money, short, shortId } from '../../base/format.ts'
import { hrefOf, type PageProps } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Line } from '../../parts/foreign.tsx'
import { Icon } from '../../parts/icon.tsx'
import { lazy } from '../../parts/lazy.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { useLiveRun } from '../../parts/run/use-live-run.ts'
import { nameOf } from '../../parts/run-facts.ts'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago, Countdown, Took } from '../../parts/time.tsx'
import { AgainActions } from './again-actions.tsx'
import { RunCause } from './run-cause.tsx'
import { RunFiles } from './run-files.tsx'
import { RunStory } from './run-story.tsx'
import { Waterfall } from './waterfall.tsx'

const Compare = lazy(() => import('./compare.tsx').then((loaded) => loaded.Compare))

type Run = Schema<'Run'>

/** One run, or two side by side. */
export function RunPage({ params: { run = '' }, query }: PageProps) {
  const other = query.get('with')
  return other ? <Compare key={`${run} ${other}`} ids={[run, other]} /> : <OneRun key={run} id={run} />
}

/** The page of a run: its result, its usage, and its whole content. */
function OneRun({ id }: { id: string }) {
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
            <Course key={`${id} ${data.ended_at === null}`} run={data} onStep={run.want} />
          </>
        )}
      </Loaded>
    </div>
  )
}

/** The cause first, then the timeline, then the content of the run. `onStep` is called when a running run has begun or ended a step. */
function Course({ run, onStep }: { run: Run; onStep(): void }) {
  const isOver = run.ended_at !== null
  const onEvent = ({ event }: RunEvent) => !isOver && !DELTAS.has(event) && onStep()
  const live = useLiveRun({ runId: run.run_id, sessionId: run.session_id ?? run.run_id, isOver, onEvent })
  return (
    <>
      <RunCause run={run} live={live} />
      <Waterfall run={run} live={live} />
      <div class="run-page">
        <div class="stack">
          <section class="card padded stack" aria-label="Facts">
            <RunFacts run={run} />
          </section>
          <RunFiles run={run} />
        </div>
        <RunStory run={run} live={live} />
      </div>
    </>
  )
}

const DELTAS: ReadonlySet<string> = new Set(['text_delta', 'thinking_delta', 'tool_progress'])

function Head({ run }: { run: Run }) {
  const cancel = () => send('DELETE', `/runs/${run.run_id}`).then(() => tell('The run is cancelled'), tellFailure)
  return (
    <div class="page-head run-head">
      <StateBadge state={run.status} />
      <h2 class="grow" title={nameOf(run)}>
        {nameOf(run)}
      </h2>
      {run.ended_at === null && may('run') && (
        <button type="button" class="button danger" onClick={() => void cancel()}>
          Cancel this run
        </button>
      )}
      <AgainActions run={run} />
      <CopyAs method="GET" path={`/runs/${run.run_id}`} />
    </div>
  )
}

/** The facts of a run's record. Missing facts are left out. */
function RunFacts({ run }: { run: Schema<'Run'> }) {
  const facts: readonly (readonly [name: string, value: ComponentChildren])[] = [
    ['Waits for', run.tool_call_ids && <CallerTools runId={run.run_id} />],
    ['Ended as', run.code && <code>{run.code}</code>],
    ['Started', <Ago at={run.started_at} />],
    ['Took', <Took from={run.started_at} to={run.ended_at} />],
    ['Model', run.model],
    ['Tokens', run.input_tokens !== undefined && `↑${short(run.input_tokens)} ↓${short(run.output_tokens ?? 0)}`],
    ['From the cache', run.cache_read_tokens ? short(run.cache_read_tokens) : undefined],
    ['To the cache', run.cache_write_tokens ? short(run.cache_write_tokens) : undefined],
    ['Cost', run.cost_usd !== undefined && money(run.cost_usd)],
    ['Turns', run.turns],
    ['Tool calls', run.tool_calls],
    ['Permissions', run.permissions],
    ['Started by', run.subject],
    [
      'Conversation',
      run.session_id && <a href={hrefOf(`/chat/${encodeURIComponent(run.session_id)}`)}>{shortId(run.session_id)}</a>,
    ],
    ['Customer', run.customer_id],
    ['Metadata', pairsOf(run.metadata)],
    ['Flow', run.flow],
    ['Plan', run.plan_id && <a href={hrefOf(`/plans/${run.plan_id}`)}>{shortId(run.plan_id)}</a>],
    ['Step', run.step_id],
    ['Request', run.request_id && <code>{run.request_id}</code>],
    ['Run', <code>{run.run_id}</code>],
  ]
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== false && value !== '')
        .map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
    </dl>
  )
}

const pairsOf = (metadata: Run['metadata']) =>
  metadata && Object.entries(metadata).map(([name, value]) => <div key={name}>{`${name} = ${value}`}</div>)

/** The calls that the program which has started the run has to make. */
function CallerTools({ runId }: { runId: string }) {
  const concerns = ({ event, data }: TenantEvent) => event.startsWith('tool_call.') && data['run_id'] === runId
  const list = useList<Schema<'PendingToolCall'>>({ path: '/tool-calls', field: 'tool_calls', concerns })
  const calls = list.state.value.data?.items.filter(({ run_id: id }) => id === runId) ?? []
  return (
    <ul>
      {calls.map(({ tool_use_id: id, tool_name: name, expires_at: end }) => (
        <li key={id}>
          the caller’s tool{' '}
          <strong>
            <Line text={name} />
          </strong>
          , <Countdown until={end} /> left
        </li>
      ))}
    </ul>
  )
}
