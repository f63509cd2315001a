import { type ComponentChildren, toChildArray } from 'preact'
import type { Schema } from '../../../../shared/client/api.ts'
import { asks, waitingCount } from '../../api/pending.ts'
import { hrefOf } from '../../base/router.ts'
import { batchesOf } from '../../parts/ask/batches.ts'
import type { Failures } from './failures.ts'
import { AskRow, FailureRow, PlanRow, RunRow, useNewestPlans } from './rows.tsx'

type Run = Schema<'Run'>

const isOpen = ({ status }: Run) => status === 'running' || status === 'waiting'

type ColumnsProps = {
  runs: readonly Run[]
  failures: readonly Failures[]
  /** There are older runs, some of which may still be running. */
  isPart: boolean
}

/** Three columns: waiting for a person, running, and recently ended. No entry is in two columns. */
export function Columns({ runs, failures, isPart }: ColumnsProps) {
  const plans = useNewestPlans()
  const asking = new Set(asks().value.map(({ run_id }) => run_id))
  const failed = new Set(plans.failed.map(({ id }) => id))
  for (const each of failures) for (const { run_id } of each.runs) failed.add(run_id)
  const own = runs.filter(({ kind }) => kind !== 'step')
  const working = own.filter((run) => isOpen(run) && run.kind !== 'plan' && !asking.has(run.run_id))
  const done = own.filter((run) => !isOpen(run) && !failed.has(run.run_id) && !failed.has(run.plan_id ?? ''))
  return (
    <div class="columns">
      <NeedsYou failures={failures} plans={plans.failed} />
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
        {done.slice(0, 20).map((run) => (
          <RunRow key={run.run_id} run={run} />
        ))}
      </Column>
    </div>
  )
}

type NeedsYouProps = Pick<ColumnsProps, 'failures'> & { plans: readonly Schema<'PlanSummary'>[] }

const NeedsYou = ({ failures, plans }: NeedsYouProps) => (
  <Column
    title="Needs you"
    count={waitingCount().value + plans.length + failures.length}
    empty="No request waits for an answer, and nothing has failed today."
  >
    {batchesOf(asks().value).map((batch) => (
      <AskRow key={batch[0]?.id} batch={batch} />
    ))}
    {otherAsks()}
    {failures.map((each) => (
      <FailureRow key={each.code} failures={each} />
    ))}
    {plans.map((plan) => (
      <PlanRow key={plan.id} plan={plan} />
    ))}
  </Column>
)

/** Leads to the requests that are not read here. */
function otherAsks() {
  if (waitingCount().value <= asks().value.length) return null
  return (
    <li>
      <a href={hrefOf('/approvals')}>All {waitingCount().value} requests</a>
    </li>
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
