import { useSignal } from '@preact/signals'
import type { Schema, TenantEvent } from '../../../../shared/client/api.ts'
import { may } from '../../api/caller.ts'
import { get, send } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { counted, money, shortId } from '../../base/format.ts'
import { hrefOf, navigate, setFilters } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Line } from '../../parts/foreign.tsx'
import { Icon } from '../../parts/icon.tsx'
import { lazy } from '../../parts/lazy.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { Notice } from '../../parts/notice.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { Ago, Took } from '../../parts/time.tsx'
import { Gantt } from './gantt.tsx'
import type { Plan } from './plan.ts'
import { WaveGraph } from './wave-graph.tsx'

/** This module contains the view of a step's run. */
const StepPanel = lazy(() => import('./step-panel.tsx').then((loaded) => loaded.StepPanel))

type PlanPageProps = { id: string; step: string | null; view: string | null }

/** A plan while it runs: its steps by wave or on a timeline, and one step with details. */
export function PlanPage({ id, step, view }: PlanPageProps) {
  const concerns = ({ data }: TenantEvent) => data['plan_id'] === id
  const plan = useResource(id, () => get<Plan>(`/plans/${encodeURIComponent(id)}`), concerns)
  return (
    <div class="page">
      <a class="button plain back-link" href={hrefOf('/plans')}>
        <Icon name="back" /> Plans
      </a>
      <Loaded from={plan}>
        {(data) => (
          <>
            <Head plan={data} />
            {data.error !== undefined && <Notice tone="bad">{data.error}</Notice>}
            <Steps plan={data} step={step} view={view ?? ''} />
          </>
        )}
      </Loaded>
    </div>
  )
}

const Head = ({ plan }: { plan: Plan }) => (
  <div class="page-head">
    <StateBadge state={plan.status} />
    <h2>
      <Line text={plan.title || shortId(plan.id)} />
    </h2>
    <span class="soft small row">
      <Ago at={plan.created_at} />
      {plan.started_at !== null && <Took from={plan.started_at} to={plan.ended_at} />}
      <span class="number">{money(plan.usage.cost_usd)}</span>
      {plan.retry_of !== undefined && <a href={hrefOf(`/plans/${plan.retry_of}`)}>repeats {shortId(plan.retry_of)}</a>}
    </span>
    <span class="grow" />
    {may('run') && <PlanActions plan={plan} />}
    <CopyAs method="GET" path={`/plans/${plan.id}`} />
  </div>
)

const VIEWS = [
  { id: '', label: 'Waves' },
  { id: 'time', label: 'Time' },
] as const

function Steps({ plan, step, view }: { plan: Plan; step: string | null; view: string }) {
  const chosen = plan.steps.find(({ id }) => id === step)
  return (
    <>
      <section class="card" aria-label="Steps">
        <Tabs path={`/plans/${plan.id}`} name="view" tabs={VIEWS} current={view} />
        <div class="plan-view">
          {view === 'time' ? <Gantt plan={plan} chosen={step} /> : <WaveGraph plan={plan} chosen={step} />}
        </div>
      </section>
      {chosen && (
        <StepPanel key={chosen.id} plan={plan} step={chosen} onClose={() => setFilters({ step: undefined })} />
      )}
    </>
  )
}

/** The actions that the state of a plan allows. */
function PlanActions({ plan }: { plan: Plan }) {
  const isBusy = useSignal(false)
  const isOpen = plan.status === 'queued' || plan.status === 'running'
  const act = (work: () => Promise<unknown>) => async () => {
    isBusy.value = true
    await work().catch(tellFailure)
    isBusy.value = false
  }
  const cancel = act(() => send('POST', `/plans/${plan.id}/cancel`).then(() => tell('The plan is cancelled')))
  const retry = act(async () => {
    const again = await send<Schema<'SubmittedPlan'>>('POST', `/plans/${plan.id}/retry`)
    navigate(hrefOf(`/plans/${again.id}`))
  })
  const left = Object.values(plan.step_statuses).filter((status) => status !== 'done').length
  return (
    <>
      {isOpen && (
        <button type="button" class="button danger" disabled={isBusy.value} onClick={() => void cancel()}>
          Cancel this plan
        </button>
      )}
      {!isOpen && plan.status !== 'done' && (
        <button type="button" class="button main" disabled={isBusy.value} onClick={() => void retry()}>
          Retry {counted(left, 'step')}
        </button>
      )}
      <a class="button" href={hrefOf('/plans/new', { from: plan.id })}>
        Submit as new …
      </a>
    </>
  )
}
