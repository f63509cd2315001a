import type { Schema } from '../../../../shared/client/api.ts'
import { useList } from '../../api/list.ts'
import { OpenForm } from '../../parts/folded-form.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { InstanceCard } from './instance-card.tsx'
import { NewInstance } from './new-instance.tsx'

/** The tenant's own providers. Their keys are written and never shown. */
export function Providers() {
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
