import './plans.css'
import { may } from '../../api/caller.ts'
import { hrefOf, type PageProps } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { lazy } from '../../parts/lazy.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { PlanList } from './plan-list.tsx'
import { PlanPage } from './plan-page.tsx'
import { Schedules } from './schedules.tsx'

/** It brings the editor. */
const NewPlan = lazy(() => import('./new-plan.tsx').then((loaded) => loaded.NewPlan))

const TABS = [
  { id: '', label: 'Plans' },
  { id: 'schedules', label: 'Schedules' },
] as const

/** The pages of plans: the list, one plan, a new plan, and schedules that submit plans at set times. */
export function Plans({ params, query }: PageProps) {
  const tab = query.get('tab') ?? ''
  if (params['id'] === 'new') return <NewPlan from={query.get('from')} />
  if (params['id'] !== undefined)
    return <PlanPage key={params['id']} id={params['id']} step={query.get('step')} view={query.get('view')} />
  return (
    <div class="page">
      <PageHead title="Plans" purpose="Steps that agents work off in the background, once or on a schedule.">
        <CopyAs method="GET" path={tab === 'schedules' ? '/plans/schedules' : '/plans'} />
        {may('run') && tab === '' && (
          <a class="button" href={hrefOf('/plans/new')}>
            New plan
          </a>
        )}
      </PageHead>
      <Tabs path="/plans" name="tab" tabs={TABS} current={tab} />
      {tab === 'schedules' ? <Schedules /> : <PlanList />}
    </div>
  )
}
