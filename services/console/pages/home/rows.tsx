import type { Schema } from '../../../../shared/client/api.ts'
import { has } from '../../api/caller.ts'
import { get } from '../../api/engine.ts'
import type { Ask } from '../../api/pending.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'
import { money, short, shortId } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { AskSummary } from '../../parts/ask/ask-summary.tsx'
import { Line } from '../../parts/foreign.tsx'
import { PlanProgress } from '../../parts/plan-progress.tsx'
import { causeOf } from '../../parts/run/causes.ts'
import { nameOf, placeOf } from '../../parts/run-facts.ts'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago, Took } from '../../parts/time.tsx'
import type { Failures } from './failures.ts'

/** The row of a request, or of several equal requests. */
export const AskRow = ({ batch: [first, ...others] }: { batch: readonly Ask[] }) =>
  first ? (
    <li>
      <a class="home-row" href={hrefOf(`/approvals/${first.id}`)}>
        <AskSummary ask={first} others={others.length} />
      </a>
    </li>
  ) : null

/** The row of a running plan, or of a failed plan with the reason. */
export const PlanRow = ({ plan }: { plan: PlanSummary }) => (
  <li>
    <a class="home-row" href={hrefOf(`/plans/${plan.id}`)}>
      <span class="row tight">
        <span class="grow cut name">
          <Line text={plan.title || shortId(plan.id)} />
        </span>
        <StateBadge state={plan.status} />
      </span>
      {plan.ended_at === null ? (
        <PlanProgress counts={plan.step_counts} />
      ) : (
        <span class="cut small soft">{plan.error ?? <Ago at={plan.ended_at} />}</span>
      )}
    </a>
  </li>
)

export function RunRow({ run }: { run: Schema<'Run'> }) {
  const tokens = (run.input_tokens ?? 0) + (run.output_tokens ?? 0)
  return (
    <li>
      <a class="home-row" href={placeOf(run)}>
        <span class="row tight">
          <span class="grow cut name">{nameOf(run)}</span>
          <StateBadge state={run.status} />
        </span>
        <span class="row tight small soft">
          <Ago at={run.ended_at ?? run.started_at} />
          <Took from={run.started_at} to={run.ended_at} />
          {tokens > 0 && <span class="number">{short(tokens)} tokens</span>}
          {run.cost_usd !== undefined && run.cost_usd > 0 && <span class="number">{money(run.cost_usd)}</span>}
        </span>
      </a>
    </li>
  )
}

type FailureRowProps = { failures: Failures }

/** The row of a failed run, or of all runs that failed for the same reason. */
export function FailureRow({ failures: { code, runs } }: FailureRowProps) {
  const [newest] = runs
  if (!newest) return null
  const isOne = runs.length === 1
  const href = isOne
    ? hrefOf(`/activity/${newest.run_id}`)
    : hrefOf('/activity', { status: 'failed', code, span: '24h' })
  return (
    <li>
      <a class="home-row" href={href}>
        <span class="row tight">
          <span class={isOne ? 'grow cut name' : 'grow name'}>{isOne ? nameOf(newest) : causeOf(code).text}</span>
          {isOne ? <StateBadge state="failed" /> : <StateBadge state="failed" word={`same cause: ${runs.length}`} />}
        </span>
        <span class="small soft">
          {isOne && `${causeOf(code).text} · `}
          <code>{code}</code>
          <Named all={runs.map(({ flow }) => flow)} />
          <Named all={runs.map(({ customer_id }) => customer_id)} />
          {' · '}
          <Ago at={newest.ended_at ?? newest.started_at} />
        </span>
      </a>
    </li>
  )
}

/** The flows or customers that are concerned. */
function Named({ all }: { all: readonly (string | undefined)[] }) {
  const [first, ...others] = new Set(all.filter((name) => name !== undefined))
  if (first === undefined) return null
  return (
    <>
      {' · '}
      <Line text={first} />
      {others.length > 0 && ` and ${others.length} more`}
    </>
  )
}

type PlanSummary = Schema<'PlanSummary'>

const DAY_MS = 86_400_000

/** The newest plans: running plans, and plans that failed within the last day and were not repeated since. */
export function useNewestPlans(): { working: readonly PlanSummary[]; failed: readonly PlanSummary[] } {
  const load = async () => (has('plans') ? (await get<Schema<'PlanList'>>('/plans', { limit: 30 })).plans : [])
  const plans = useResource('newest plans', load, ({ event }) => event.startsWith('plan.')).state.value.data ?? []
  const repeated = new Set(plans.map(({ retry_of }) => retry_of))
  const isNew = ({ ended_at }: PlanSummary) => ended_at !== null && serverNow() - Date.parse(ended_at) < DAY_MS
  return {
    working: plans.filter(({ ended_at }) => ended_at === null),
    failed: plans.filter((plan) => plan.status === 'failed' && isNew(plan) && !repeated.has(plan.id)),
  }
}
