import type { Schema } from '../../../../../shared/client/api.ts'
import { get } from '../../../api/engine.ts'
import { useResource } from '../../../api/resource.ts'
import { hrefOf } from '../../../base/router.ts'
import { Loaded } from '../../../parts/loading.tsx'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { Ago } from '../../../parts/time.tsx'
import { type Flow, flowPath, isAbout, type Revision } from '../flow.ts'
import { HistoryActions } from './history-actions.tsx'
import { VersionDiff } from './version-diff.tsx'

type HistoryViewProps = { flow: Flow; query: URLSearchParams; onChange(flow: Flow): void }

/** The versions of a flow, and what one of them has changed. */
export function HistoryView({ flow, query, onChange }: HistoryViewProps) {
  const { name } = flow
  const list = useResource(
    `${name} ${flow.version} ${flow.state}`,
    () => get<Schema<'FlowRevisionList'>>(flowPath(name, '/revisions')),
    isAbout(name, 'flow.changed'),
  )
  return (
    <Loaded from={list}>
      {({ revisions }) => {
        const wanted = Number(query.get('version') ?? flow.version)
        const chosen = revisions.find(({ version }) => version === wanted) ?? revisions[0]
        return (
          <div class="history-columns">
            <nav class="card" aria-label="Versions">
              <ul>
                {revisions.map((revision) => (
                  <li key={revision.version}>
                    <Entry flow={flow} revision={revision} isChosen={revision === chosen} />
                  </li>
                ))}
              </ul>
            </nav>
            {chosen && (
              <div class="stack">
                <HistoryActions flow={flow} revision={chosen} onChange={onChange} />
                <VersionDiff revisions={revisions} chosen={chosen} against={query.get('against')} />
              </div>
            )}
          </div>
        )
      }}
    </Loaded>
  )
}

type EntryProps = { flow: Flow; revision: Revision; isChosen: boolean }

const Entry = ({ flow, revision, isChosen }: EntryProps) => (
  <a
    class="version"
    href={hrefOf(flowPath(flow.name, '/history'), { version: String(revision.version) })}
    aria-current={isChosen ? 'true' : undefined}
  >
    <strong>v{revision.version}</strong>
    <span class="small soft grow">
      <Ago at={revision.created_at} />
    </span>
    <Mark flow={flow} revision={revision} />
  </a>
)

function Mark({ flow, revision: { version, was_published: wasPublished } }: Omit<EntryProps, 'isChosen'>) {
  if (version === flow.served_version) return <StateBadge state="published" word="Served" />
  if (version === flow.version && flow.state === 'draft') return <StateBadge state="draft" />
  return wasPublished ? <span class="small soft">was published</span> : null
}
