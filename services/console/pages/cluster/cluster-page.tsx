import { useEffect } from 'preact/hooks'
import { overview, watchOverview } from '../../api/overview.ts'
import type { Overview } from '../../base/overview.ts'
import { Notice } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import { Failures, Faults } from './faults.tsx'
import { Members } from './members.tsx'
import { Tenants } from './tenants.tsx'
import './cluster.css'
import { counted, duration, money, short } from '../../base/format.ts'
import { Missing, Section } from './section.tsx'

/** The state of a deployment, as one of its processes reports it. */
export function ClusterPage() {
  useEffect(watchOverview, [])
  const { data, readAt, problem } = overview().value
  return (
    <>
      <header class="cluster-bar">
        <h1>{data?.form === 'standalone' ? 'This server' : 'Cluster'}</h1>
        <span class="small soft grow" role="status">
          {readAt !== undefined && (
            <>
              Read <Ago at={new Date(readAt).toISOString()} />, again every 5 s
            </>
          )}
        </span>
        <nav class="row" aria-label="More">
          <a href="/queues">Queues</a>
          <a href="/members">Members</a>
          <a href="/tenants">Tenants</a>
          <a href="/metrics">Metrics</a>
        </nav>
      </header>
      <main id="page" class="cluster">
        {problem !== undefined && (
          <Notice tone="bad">
            {problem} {data && 'What is shown is what was read last.'}
          </Notice>
        )}
        {data && <Parts data={data} />}
      </main>
    </>
  )
}

const Parts = ({ data }: { data: Overview }) => (
  <>
    <Figures {...data} />
    <Members members={data.members} />
    <Tenants tenants={data.tenants} />
    <div class="two">
      <div class="stack">
        <Queues queues={data.queues} form={data.form} />
        <Failures failures={data.failures} />
      </div>
      <Faults faults={data.faults} />
    </div>
  </>
)

/** The state in four numbers. */
const Figures = ({ members, queues, tenants }: Overview) => {
  const all = members ?? []
  const draining = all.filter(({ state }) => state === 'draining').length
  const working = all.filter(({ capacity }) => capacity !== null)
  const sum = (field: 'load' | 'capacity') => working.reduce((total, member) => total + (member[field] ?? 0), 0)
  const waiting = queues?.reduce((total, { waiting: each }) => total + each, 0)
  const oldestMs = Math.max(0, ...(queues ?? []).map(({ oldest_waiting_ms: ms }) => ms))
  const spent = tenants?.most_spent.reduce((total, { usd_today: usd }) => total + usd, 0)
  const failed = tenants?.most_spent.reduce((total, { failed_today: each }) => total + each, 0)
  return (
    <dl class="figures">
      <Figure
        name="Processes"
        value={members ? String(all.length) : '–'}
        more={draining > 0 && `${draining} draining`}
      />
      <Figure name="Live runs" value={members ? short(sum('load')) : '–'} more={`of ${short(sum('capacity'))}`} />
      <Figure
        name="Waiting in queues"
        value={waiting === undefined ? '–' : short(waiting)}
        more={oldestMs > 0 && `the oldest for ${duration(oldestMs)}`}
      />
      <Figure
        name="Spent today (UTC)"
        value={spent === undefined ? '–' : money(spent)}
        more={failed !== undefined && failed > 0 && counted(failed, 'run failed', 'runs failed')}
      />
    </dl>
  )
}

const Figure = ({ name, value, more }: { name: string; value: string; more: string | false }) => (
  <div class="card">
    <dt class="small soft">{name}</dt>
    <dd>
      <strong class="number">{value}</strong> {more && <span class="small soft">{more}</span>}
    </dd>
  </div>
)

/** The work that waits for an executor. */
const Queues = ({ queues, form }: Pick<Overview, 'queues' | 'form'>) => (
  <Section title="Queues" aside={<a href="/queues">{form === 'cluster' ? 'Open the dashboard' : 'Failed jobs'}</a>}>
    {queues === null ? (
      <Missing>The queue cannot be read at the moment.</Missing>
    ) : (
      <div class="table-wrap">
        <table class="table">
          <thead>
            <tr>
              <th>Work</th>
              <th class="right">Waiting</th>
              <th class="right">Oldest</th>
              <th class="right">Active</th>
              <th class="right">Failed</th>
            </tr>
          </thead>
          <tbody>
            {queues.map(({ kind, waiting, active, failed, oldest_waiting_ms: oldestMs }) => (
              <tr key={kind}>
                <td>{NAMES[kind] ?? kind}</td>
                <td class="right number">{short(waiting)}</td>
                <td class="right number">{waiting === 0 ? '–' : duration(oldestMs)}</td>
                <td class="right number">{short(active)}</td>
                <td class="right number">{short(failed)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </Section>
)

const NAMES: Readonly<Record<string, string>> = { flow: 'Flows', plan: 'Plans', schedule: 'Schedules' }
