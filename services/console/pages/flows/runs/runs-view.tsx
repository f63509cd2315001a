import type { Schema } from '../../../../../shared/client/api.ts'
import { get } from '../../../api/engine.ts'
import { useList } from '../../../api/list.ts'
import { useResource } from '../../../api/resource.ts'
import { serverNow } from '../../../base/clock.ts'
import { duration, money, shortId } from '../../../base/format.ts'
import { hrefOf } from '../../../base/router.ts'
import { Figure, Figures } from '../../../parts/figures.tsx'
import { Loaded } from '../../../parts/loading.tsx'
import { More } from '../../../parts/more.tsx'
import { Empty } from '../../../parts/notice.tsx'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { Ago, Took } from '../../../parts/time.tsx'
import { type Flow, isAbout, placeOf, runOf } from '../flow.ts'
import { Batches } from './batches.tsx'
import { addUp, DAYS, type FlowStats } from './flow-stats.ts'

type Dispatch = Schema<'DispatchSummary'>

/** What a flow has done: its runs, or its batches. */
export const RunsView = ({ flow: { name }, view }: { flow: Flow; view: 'runs' | 'batches' }) =>
  view === 'runs' ? <Runs name={name} /> : <Batches name={name} />

/** How often a flow has run, how well, and its newest runs. */
function Runs({ name }: { name: string }) {
  const ended = isAbout(name, 'flow.ended')
  const list = useList<Dispatch>({
    path: '/dispatches',
    field: 'dispatches',
    query: { flow: name, limit: 20 },
    concerns: ended,
  })
  const stats = useResource(name, () => readStats(name), ended)
  return (
    <>
      <Loaded from={stats}>{(found) => <Week name={name} stats={found} />}</Loaded>
      <Loaded from={list}>
        {({ items }) => (items.length === 0 ? <NoRuns name={name} /> : <RunTable runs={items} />)}
      </Loaded>
      <More list={list} />
    </>
  )
}

async function readStats(flow: string): Promise<FlowStats> {
  const from = new Date(serverNow() - (DAYS - 1) * 86_400_000).toISOString()
  const { buckets } = await get<Schema<'DispatchStats'>>('/dispatches/stats', {
    flow,
    bucket: 'day',
    from,
    limit: DAYS,
  })
  return addUp(buckets, serverNow())
}

const Week = ({ name, stats }: { name: string; stats: FlowStats }) => (
  <section class="card padded row" aria-label="The last 7 days">
    <Figures>
      <Figure
        name="Runs in 7 days"
        used={stats.runs}
        trend={stats.days}
        show={(runs) => `${runs}${stats.isPartial ? '+' : ''}`}
      />
      <Figure name="Failures" used={stats.failures} show={String} />
      {stats.p50Ms !== undefined && <Figure name="p50 of a day" used={stats.p50Ms} show={duration} />}
      {stats.p95Ms !== undefined && <Figure name="p95 of a day" used={stats.p95Ms} show={duration} />}
      <Figure name="Cost" used={stats.costUsd} show={money} />
    </Figures>
    <span class="grow" />
    <a class="button" href={hrefOf('/activity', { kind: 'flow', flow: name, span: '7d' })}>
      Open in Activity
    </a>
  </section>
)

const RunTable = ({ runs }: { runs: readonly Dispatch[] }) => (
  <div class="card table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>State</th>
          <th>Run</th>
          <th>Version</th>
          <th>By</th>
          <th class="right">Cost</th>
          <th class="right">Took</th>
          <th>Started</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.trace_id}>
            <td>
              <StateBadge state={run.status} />
            </td>
            <td class="whole">
              <a class="lines" href={runOf(run.trace_id)}>
                {shortId(run.trace_id)}
              </a>
              {run.error && <span class="small soft lines">{run.error.message}</span>}
            </td>
            <td>v{run.flow.version}</td>
            <td>{run.subject}</td>
            <td class="right number">{money(run.cost_usd)}</td>
            <td class="right">{run.status !== 'queued' && <Took from={run.started_at} to={run.ended_at} />}</td>
            <td>
              <Ago at={run.started_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

const NoRuns = ({ name }: { name: string }) => (
  <Empty
    title="No run yet"
    how={[
      'Publish a version: only published ones run.',
      'Run it here, or from a program: the button with the angle brackets beside Run has the call.',
      'Each run is listed here with its version, its cost and how it ended, and leads to its story.',
    ]}
    action={
      <a class="button main" href={placeOf(name, 'run')}>
        Run it
      </a>
    }
  />
)
