import { useEffect } from 'preact/hooks'
import { overview, watchOverview } from '../../api/overview.ts'
import type { Overview } from '../../base/overview.ts'
import { Notice } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import { Failures, Faults } from './faults.tsx'
import { Figures } from './figures.tsx'
import { Members } from './members.tsx'
import { Queues } from './queues.tsx'
import { Tenants } from './tenants.tsx'
import './cluster.css'

/** The state of a deployment as one of its processes knows it. */
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
