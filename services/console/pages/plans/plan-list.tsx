import type { Schema } from '../../../../shared/client/api.ts'
import { useKept } from '../../api/kept-list.ts'
import { useList } from '../../api/list.ts'
import { money, shortId } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Line } from '../../parts/foreign.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { PlanProgress } from '../../parts/plan-progress.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago, Took } from '../../parts/time.tsx'

type Summary = Schema<'PlanSummary'>

export function PlanList() {
  const concerns = ({ event }: { event: string }) => event.startsWith('plan.')
  const list = useList<Summary>({ path: '/plans', field: 'plans', concerns })
  useKept(list.state, '/plans')
  return (
    <>
      <Loaded from={list}>{({ items }) => (items.length === 0 ? <NoPlans /> : <PlanTable plans={items} />)}</Loaded>
      <More list={list} />
    </>
  )
}

const PlanTable = ({ plans }: { plans: readonly Summary[] }) => (
  <div class="card table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>State</th>
          <th>Plan</th>
          <th>Steps</th>
          <th class="right">Cost</th>
          <th class="right">Took</th>
          <th>Submitted</th>
        </tr>
      </thead>
      <tbody>
        {plans.map((plan) => (
          <tr key={plan.id}>
            <td>
              <StateBadge state={plan.status} />
            </td>
            <td class="whole">
              <a class="lines" href={hrefOf(`/plans/${plan.id}`)}>
                <Line text={plan.title || shortId(plan.id)} />
              </a>
              {plan.error !== undefined && <span class="small soft lines">{plan.error}</span>}
            </td>
            <td>
              <PlanProgress counts={plan.step_counts} />
            </td>
            <td class="right number">{money(plan.usage.cost_usd)}</td>
            <td class="right">{plan.started_at === null ? '–' : <Took from={plan.started_at} to={plan.ended_at} />}</td>
            <td>
              <Ago at={plan.created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

const NoPlans = () => (
  <Empty
    title="No plan yet"
    how={[
      'Write the steps: each has a prompt, and names the steps that it waits for.',
      'Submit the plan: steps that wait for nothing run side by side, in the background.',
      'Watch each step, or come back later: a plan survives a crash and a restart.',
    ]}
    action={
      <a class="button main" href={hrefOf('/plans/new')}>
        Write the first plan
      </a>
    }
  >
    A plan gives agents work of several steps, and repeats only what has failed.
  </Empty>
)
