import './settings.css'
import { has, may } from '../../api/caller.ts'
import type { PageProps } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Empty } from '../../parts/notice.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { Changes } from './changes.tsx'
import { EngineSettings } from './engine-settings.tsx'
import { LimitSettings } from './limit-settings.tsx'
import { Models } from './models/models.tsx'
import { Webhooks } from './webhooks.tsx'

const TABS = [
  { id: '', label: 'Models' },
  { id: 'routing', label: 'Routing' },
  { id: 'limits', label: 'Limits' },
  { id: 'webhooks', label: 'Webhooks' },
  { id: 'changes', label: 'Changes' },
] as const

const PATHS: Readonly<Record<string, string>> = {
  '': '/config/instances',
  routing: '/config/engine',
  limits: '/config/limits',
  webhooks: '/config/webhooks',
  changes: '/config/changes',
}

/** The tenant's configuration: providers and routing, limits, webhooks. */
export function Settings({ query }: PageProps) {
  const tab = query.get('tab') ?? ''
  if (!may('admin'))
    return (
      <Empty title="Your token may not see the settings">
        They need the scope admin: ask for a token with it at the issuer.
      </Empty>
    )
  if (!has('config'))
    return (
      <Empty title="Configuration is off">
        This server has no store or no master key. The operator sets MASTER_KEY, and MONGODB_URL in a cluster.
      </Empty>
    )
  return (
    <div class="page settings">
      <PageHead title="Settings" purpose="Which models answer, how much may be used, and who is told.">
        <CopyAs method="GET" path={PATHS[tab] ?? '/config/engine'} />
      </PageHead>
      <Tabs path="/settings" name="tab" tabs={TABS} current={tab} />
      {tab === '' && <Models />}
      {tab === 'routing' && <EngineSettings />}
      {tab === 'limits' && <LimitSettings />}
      {tab === 'webhooks' && <Webhooks />}
      {tab === 'changes' && <Changes />}
    </div>
  )
}
