import type { Schema } from '../../../../shared/client/api.ts'
import { caller, has, may } from '../../api/caller.ts'
import { useList } from '../../api/list.ts'
import { asks, waitingCount } from '../../api/pending.ts'
import { hrefOf } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Budget } from './budget.tsx'
import { Column } from './column.tsx'
import { useNewestPlans } from './plans.ts'
import { AskRow, PlanRow, RunRow } from './rows.tsx'
import './home.css'

type Run = Schema<'Run'>

/** Three lists: requests and failed plans that need the person, work that goes on, and work that has ended lately. */
export function Home() {
  const concerns = ({ event }: { event: string }) =>
    event.startsWith('run.') || event === 'plan.queued' || event === 'plan.ended'
  const list = useList<Run>({ path: '/runs', field: 'runs', query: { limit: 50 }, concerns })
  return (
    <div class="page home">
      <div class="row">
        <Budget />
        <span class="grow" />
        <CopyAs method="GET" path="/runs" query={{ limit: '50' }} />
      </div>
      <Loaded from={list}>
        {({ items, next }) =>
          items.length === 0 && asks().value.length === 0 ? (
            <FirstVisit />
          ) : (
            <Columns runs={items} isPart={next !== undefined} />
          )
        }
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

/** A server on which nothing has run: the one next step is a chat. */
function FirstVisit() {
  const model = caller().value?.model
  return (
    <div class="card first-visit">
      <Empty
        title="See an agent at work"
        action={
          may('run') && (
            <a class="button main" href={hrefOf('/chat', { try: 'permission' })}>
              Start the first chat
            </a>
          )
        }
      >
        {model === 'demo'
          ? 'No model is configured, so the built-in demo answers. It calls a tool, asks for your permission, and is done in a minute.'
          : 'Ask the agent for something: it calls tools, and asks for your permission before it changes anything.'}
      </Empty>
      <ul class="checks">
        <Check isDone={model !== null && model !== undefined}>
          {model ? `The model ${model} answers` : 'No model is configured'}
        </Check>
        <Check isDone={has('config')}>
          {has('config')
            ? 'Providers, limits and webhooks can be configured'
            : 'Configuration is off: it needs a store and a master key'}
        </Check>
        <Check isDone={has('plans')}>
          {has('plans') ? 'Plans run in the background' : 'Plans are off: they need a store'}
        </Check>
      </ul>
    </div>
  )
}

const Check = ({ isDone, children }: { isDone: boolean; children: string }) => (
  <li class="small">
    <b class={isDone ? 'yes' : 'no'} aria-label={isDone ? 'ready' : 'missing'}>
      {isDone ? '✓' : '–'}
    </b>{' '}
    {children}
  </li>
)
