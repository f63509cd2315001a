import type { Schema } from '../../../../shared/client/api.ts'
import { caller } from '../../api/caller.ts'
import { useList } from '../../api/list.ts'
import { asks, waitingCount } from '../../api/pending.ts'
import { hrefOf } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { FirstVisit } from './first-visit.tsx'
import { AskRow, PlanRow, RunRow, useNewestPlans } from './rows.tsx'
import './home.css'
import { type ComponentChildren, toChildArray } from 'preact'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'
import { money, short } from '../../base/format.ts'
import { Figure, Figures } from '../../parts/figures.tsx'

type Run = Schema<'Run'>

/** Three lists: requests and failed plans that need the person, work that goes on, and work that has ended lately. */
export function Home() {
  const concerns = ({ event }: { event: string }) =>
    event.startsWith('run.') || event === 'plan.queued' || event === 'plan.ended'
  const list = useList<Run>({ path: '/runs', field: 'runs', query: { limit: 50 }, concerns })
  return (
    <div class="page home">
      <PageHead title="Home" purpose="What needs you, what is at work, and what has ended.">
        <CopyAs method="GET" path="/runs" query={{ limit: '50' }} />
      </PageHead>
      <Loaded from={list}>
        {({ items, next }) => (
          <>
            {next === undefined && <FirstVisit runs={items} />}
            {items.length > 0 && <Budget />}
            {items.length + asks().value.length > 0 && <Columns runs={items} isPart={next !== undefined} />}
          </>
        )}
      </Loaded>
    </div>
  )
}

const isOpen = ({ status }: Run) => status === 'running' || status === 'waiting'

/** `isPart`: there are older runs, some of which may go on. */
function Columns({ runs, isPart }: { runs: readonly Run[]; isPart: boolean }) {
  const plans = useNewestPlans()
  const working = runs.filter((run) => isOpen(run) && run.kind !== 'plan' && run.kind !== 'step')
  const done = runs.filter((run) => !isOpen(run) && run.kind !== 'step').slice(0, 20)
  return (
    <div class="columns">
      <Column
        title="Needs you"
        count={waitingCount().value + plans.failed.length}
        empty="No request waits for an answer, and no plan has failed today."
      >
        {asks().value.map((ask) => (
          <AskRow key={ask.id} ask={ask} />
        ))}
        {otherAsks()}
        {plans.failed.map((plan) => (
          <PlanRow key={plan.id} plan={plan} />
        ))}
      </Column>
      <Column
        title="Working"
        count={working.length + plans.working.length}
        isPart={isPart && working.length > 0}
        empty="No agent is at work."
      >
        {plans.working.map((plan) => (
          <PlanRow key={plan.id} plan={plan} />
        ))}
        {working.map((run) => (
          <RunRow key={run.run_id} run={run} />
        ))}
      </Column>
      <Column title="Done lately" count={undefined} empty="Nothing has ended yet.">
        {done.map((run) => (
          <RunRow key={run.run_id} run={run} />
        ))}
      </Column>
    </div>
  )
}

/** Leads to the requests that are not read here. */
function otherAsks() {
  if (waitingCount().value <= asks().value.length) return null
  return (
    <li>
      <a href={hrefOf('/approvals')}>All {waitingCount().value} requests</a>
    </li>
  )
}

/** The tenant's usage of today (UTC), beside its budget where it has one. */
function Budget() {
  const from = `${new Date(serverNow()).toISOString().slice(0, 10)}T00:00:00.000Z`
  const load = () => get<Schema<'UsageResponse'>>('/usage', { bucket: 'day', by: 'kind', from })
  const usage = useResource(from, load, ({ event }) => event === 'run.ended').state.value.data
  if (!usage) return null
  const sum = (field: 'runs' | 'failed' | 'input_tokens' | 'output_tokens' | 'cost_usd') =>
    usage.rows.reduce((total, row) => total + row[field], 0)
  const limits = caller().value?.limits
  return (
    <Figures>
      <Figure name="Spent today" used={sum('cost_usd')} of={limits?.['usd_per_day']} show={money} />
      <Figure
        name="Tokens today"
        used={sum('input_tokens') + sum('output_tokens')}
        of={limits?.['tokens_per_day']}
        show={short}
      />
      <Figure name="Runs today" used={sum('runs')} show={short} />
      <Figure name="Failed" used={sum('failed')} show={short} />
    </Figures>
  )
}

type ColumnProps = {
  title: string
  count: number | undefined
  /** There may be more than were counted. */
  isPart?: boolean
  empty: string
  children: ComponentChildren
}

const Column = ({ title, count, isPart = false, empty, children }: ColumnProps) => (
  <section class="card column" aria-label={title}>
    <header>
      <h2>{title}</h2>
      {count !== undefined && count > 0 && <span class="badge">{isPart ? `${count}+` : count}</span>}
    </header>
    {toChildArray(children).length === 0 ? <p class="soft none">{empty}</p> : <ul>{children}</ul>}
  </section>
)
