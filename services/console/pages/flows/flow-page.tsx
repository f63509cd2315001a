import { has, may } from '../../api/caller.ts'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { hrefOf } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Icon } from '../../parts/icon.tsx'
import { lazy } from '../../parts/lazy.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { documentOf } from './edit/flow-document.ts'
import { type Flow, flowPath, isAbout, placeOf, type View } from './flow.ts'
import { PublishButton } from './publish-button.tsx'

const EditView = lazy(() => import('./edit/edit-view.tsx').then((loaded) => loaded.EditView))
const RunView = lazy(() => import('./run/run-view.tsx').then((loaded) => loaded.RunView))
const RunsView = lazy(() => import('./runs/runs-view.tsx').then((loaded) => loaded.RunsView))
const EvaluateView = lazy(() => import('./evaluate/evaluate-view.tsx').then((loaded) => loaded.EvaluateView))
const HistoryView = lazy(() => import('./history/history-view.tsx').then((loaded) => loaded.HistoryView))
const MemoryView = lazy(() => import('./memory/memory-view.tsx').then((loaded) => loaded.MemoryView))

const VIEWS: Readonly<Record<View, { label: string; part: string; method?: string; isFor(flow: Flow): boolean }>> = {
  edit: { label: 'Edit', part: '', isFor: ({ built_in }) => !built_in },
  run: { label: 'Run', part: '/run', method: 'POST', isFor: () => may('run') },
  runs: { label: 'Runs', part: '', isFor: () => has('dispatches') },
  batches: { label: 'Batches', part: '', isFor: () => has('config') },
  evaluate: { label: 'Evaluate', part: '/evaluations', isFor: ({ built_in }) => !built_in && has('dispatches') },
  history: { label: 'History', part: '/revisions', isFor: ({ built_in }) => !built_in },
  memory: { label: 'Memory', part: '/memory', isFor: () => true },
}

/** Views without the request button: they show their requests themselves, or have none. */
const VIEWS_WITH_OWN = ['run', 'runs', 'batches'] as const

type FlowPageProps = { name: string; view: string | undefined; query: URLSearchParams }

/** A flow: its definition, its runs, and its versions. */
export function FlowPage({ name, view, query }: FlowPageProps) {
  const flow = useResource(name, () => get<Flow>(flowPath(name)), isAbout(name, 'flow.changed'))
  return (
    <div class="page">
      <a class="button plain back-link" href={hrefOf('/flows')}>
        <Icon name="back" /> Flows
      </a>
      <Loaded from={flow}>{(data) => <Views flow={data} view={view} query={query} onChange={flow.set} />}</Loaded>
    </div>
  )
}

type ViewsProps = { flow: Flow; view: string | undefined; query: URLSearchParams; onChange(flow: Flow): void }

function Views({ flow, view, query, onChange }: ViewsProps) {
  const offered = (Object.keys(VIEWS) as View[]).filter((id) => VIEWS[id].isFor(flow))
  const current = view === undefined ? offered[0] : offered.find((id) => id === view)
  const request = current && { method: VIEWS[current].method ?? 'GET', path: flowPath(flow.name, VIEWS[current].part) }
  return (
    <>
      <Head flow={flow} view={current} onChange={onChange} />
      <Tabs
        path={flowPath(flow.name)}
        tabs={offered.map((id) => ({ id, label: VIEWS[id].label }))}
        current={current ?? ''}
      >
        {request && VIEWS_WITH_OWN.every((id) => id !== current) && <CopyAs {...request} />}
      </Tabs>
      {current === undefined && (
        <Empty title="There is no such view">This flow is built in, or your token may not be used for it.</Empty>
      )}
      {current === 'edit' && <EditView flow={flow} onChange={onChange} />}
      {current === 'run' && <RunView flow={flow} query={query} onChange={onChange} />}
      {(current === 'runs' || current === 'batches') && <RunsView flow={flow} view={current} />}
      {current === 'evaluate' && <EvaluateView flow={flow} onChange={onChange} />}
      {current === 'history' && <HistoryView flow={flow} query={query} onChange={onChange} />}
      {current === 'memory' && <MemoryView flow={flow} query={query} />}
    </>
  )
}

/**
 * The served version, the draft that would replace it, and the button to publish the draft. In the evaluation view this
 * button asks for a pass rate.
 */
function Head({ flow, view, onChange }: { flow: Flow; view: View | undefined; onChange(flow: Flow): void }) {
  const { name, version, served_version: served, published_version: published } = flow
  const isDraft = flow.state === 'draft'
  return (
    <div class="page-head">
      <h2>{name}</h2>
      {served === null ? (
        <StateBadge state="unpublished" word={published === null ? 'Not published' : `v${published} is hidden`} />
      ) : (
        <StateBadge state="published" word={`Published v${served}`} />
      )}
      {isDraft && <StateBadge state="draft" word={`Draft v${version}`} />}
      {isDraft && published !== null && (
        <a class="small" href={`${placeOf(name, 'history')}?version=${version}&against=${published}`}>
          See what differs
        </a>
      )}
      {flow.built_in && <span class="badge">Built in</span>}
      <span class="grow" />
      {isDraft && view !== 'evaluate' && <PublishDraft flow={flow} onChange={onChange} />}
    </div>
  )
}

/** Unsaved changes would not be included. */
function PublishDraft({ flow, onChange }: Pick<ViewsProps, 'flow' | 'onChange'>) {
  const isUnsaved = documentOf(flow).isChanged.value
  return (
    <>
      {isUnsaved && <span class="small soft">Save the draft first</span>}
      <PublishButton flow={flow} isOff={isUnsaved} onPublished={onChange} />
    </>
  )
}
