import './approvals.css'
import { askForNotices, noticePermission } from '../../api/notices.ts'
import type { PageProps } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { ClientCalls } from './client-calls.tsx'
import { DecidedList } from './decided-list.tsx'
import { Inbox } from './inbox.tsx'
import { RememberedList } from './remembered-list.tsx'

const TABS = [
  { id: '', label: 'Waiting' },
  { id: 'decided', label: 'Decided' },
  { id: 'remembered', label: 'Remembered' },
  { id: 'programs', label: 'Programs' },
] as const

/** The requests that wait for an answer, those that were decided, the tools that no longer ask, and the calls that programs must execute. */
export function Approvals({ params, query }: PageProps) {
  const tab = query.get('tab') ?? ''
  return (
    <div class="page approvals">
      <PageHead title="Approvals" purpose="What agents may do only when a person says so.">
        {noticePermission().value === 'default' && (
          <button type="button" class="button notify" onClick={() => void askForNotices()}>
            Notify me
          </button>
        )}
        {tab === 'programs' ? (
          <CopyAs method="GET" path="/tool-calls" />
        ) : (
          <CopyAs method="GET" path="/permissions" query={{ state: tab }} />
        )}
      </PageHead>
      <Tabs path="/approvals" name="tab" tabs={TABS} current={tab} />
      {tab === 'decided' && <DecidedList />}
      {tab === 'remembered' && <RememberedList />}
      {tab === 'programs' && <ClientCalls />}
      {tab === '' && <Inbox id={params['id']} />}
    </div>
  )
}
