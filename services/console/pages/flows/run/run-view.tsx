import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../../shared/client/api.ts'
import { has } from '../../../api/caller.ts'
import { get } from '../../../api/engine.ts'
import { useResource } from '../../../api/resource.ts'
import { setFilters } from '../../../base/router.ts'
import { Loaded } from '../../../parts/loading.tsx'
import { Empty } from '../../../parts/notice.tsx'
import { type Definition, type Flow, flowPath, placeOf } from '../flow.ts'
import type { FlowRun } from './flow-run.ts'
import { FlowStory } from './flow-story.tsx'
import { NewBatch } from './new-batch.tsx'
import { RunForm } from './run-form.tsx'

type RunViewProps = { flow: Flow; query: URLSearchParams; onChange(flow: Flow): void }

/** Runs a version that was published, with a form for the input that comes from its schema. */
export function RunView({ flow, query, onChange }: RunViewProps) {
  const revisions = useResource(`${flow.name} ${flow.version} ${flow.state}`, () => readRevisions(flow))
  if (flow.served_version === null) return <NothingServed flow={flow} />
  return (
    <Loaded from={revisions}>
      {(found) => {
        const runnable = found.filter((each) => each.was_published)
        const wanted = Number(query.get('version') ?? flow.served_version)
        const chosen = runnable.find(({ version }) => version === wanted) ?? runnable[0]
        if (!chosen) return <NothingServed flow={flow} />
        return (
          <>
            {runnable.length > 1 && <Versions flow={flow} versions={runnable} chosen={chosen.version} />}
            <Runner key={chosen.version} flow={flow} revision={chosen} onChange={onChange} />
            {has('config') && <NewBatch key={`batch ${chosen.version}`} flow={flow} version={chosen.version} />}
          </>
        )
      }}
    </Loaded>
  )
}

type Revision = { version: number; definition: Definition; was_published: boolean }

/** A built-in flow has one version, which is served. */
async function readRevisions({ name, built_in, version, definition }: Flow): Promise<readonly Revision[]> {
  if (built_in) return [{ version, definition, was_published: true }]
  return (await get<Schema<'FlowRevisionList'>>(flowPath(name, '/revisions'))).revisions
}

const NothingServed = ({ flow }: { flow: Flow }) => (
  <Empty
    title="Nothing is published yet"
    how={[
      'Look at the rendered prompts beside the form: they are what the models get.',
      `Publish v${flow.version} at the top of this page.`,
      'Run it here with a form that is made of its input schema, or call it from a program.',
    ]}
    action={
      <a class="button" href={placeOf(flow.name, 'edit')}>
        Look at the draft
      </a>
    }
  >
    A flow runs when a version of it is published.
  </Empty>
)

type VersionsProps = { flow: Flow; versions: readonly Revision[]; chosen: number }

const Versions = ({ flow, versions, chosen }: VersionsProps) => (
  <label class="row small">
    Version
    <select
      class="input"
      value={chosen}
      onChange={({ currentTarget: { value } }) =>
        setFilters({ version: Number(value) === flow.served_version ? undefined : value })
      }
    >
      {versions.map(({ version }) => (
        <option key={version} value={version}>
          v{version}
          {version === flow.served_version ? ', served' : ''}
        </option>
      ))}
    </select>
  </label>
)

type RunnerProps = { flow: Flow; revision: Revision; onChange(flow: Flow): void }

function Runner({ flow, revision, onChange }: RunnerProps) {
  const run = useSignal<FlowRun | undefined>(undefined)
  useEffect(() => () => run.peek()?.leave(), [])
  const start = (next: FlowRun) => {
    run.peek()?.leave()
    run.value = next
    void next.follow()
  }
  return (
    <div class="run-columns">
      <RunForm flow={flow} revision={revision} run={run.value} onStart={start} />
      {run.value ? (
        <FlowStory key={run.value.startedAt} flow={flow} run={run.value} onChange={onChange} />
      ) : (
        <section class="card" aria-label="Answer">
          <Empty title="No answer yet">What the flow does and answers is shown here.</Empty>
        </section>
      )}
    </div>
  )
}
