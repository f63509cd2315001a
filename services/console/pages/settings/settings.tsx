import { has, may } from '../../api/caller.ts'
import type { PageProps } from '../../base/page-props.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { Changes } from './changes.tsx'
import { EngineSettings } from './engine-settings.tsx'
import { LimitSettings } from './limit-settings.tsx'
import { Webhooks } from './webhooks.tsx'
import './settings.css'
import type { Schema } from '../../../../shared/client/api.ts'
import { useList } from '../../api/list.ts'
import { OpenForm } from '../../parts/folded-form.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { InstanceCard } from './instance-card.tsx'
import { NewInstance } from './new-instance.tsx'

const TABS = [
  { id: '', label: 'Providers' },
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
      <Tabs path="/settings" name="tab" tabs={TABS} current={tab}>
        <CopyAs method="GET" path={PATHS[tab] ?? '/config/engine'} />
      </Tabs>
      {tab === '' && <Providers />}
      {tab === 'routing' && <EngineSettings />}
      {tab === 'limits' && <LimitSettings />}
      {tab === 'webhooks' && <Webhooks />}
      {tab === 'changes' && <Changes />}
    </div>
  )
}

/** The tenant's own providers. Their keys are written and never shown. */
function Providers() {
  const concerns = ({ event }: { event: string }) => event === 'config.changed'
  const list = useList<Schema<'Instance'>>({ path: '/config/instances', field: 'instances', concerns })
  return (
    <>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No provider of your own yet" action={<OpenForm name="new-instance">Add a provider</OpenForm>}>
              A provider is where models answer. Name it here, then choose in Routing who uses it. Until then the
              server's own model answers.
            </Empty>
          ) : (
            <div class="instances">
              {items.map((instance) => (
                <InstanceCard key={instance.name} instance={instance} onChange={list.reload} />
              ))}
            </div>
          )
        }
      </Loaded>
      <More list={list} />
      <NewInstance onSaved={list.reload} />
    </>
  )
}
