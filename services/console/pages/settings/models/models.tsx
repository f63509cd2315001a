import { useSignal } from '@preact/signals'
import type { Schema, TenantEvent } from '../../../../../shared/client/api.ts'
import { get } from '../../../api/engine.ts'
import { useList } from '../../../api/list.ts'
import { useResource } from '../../../api/resource.ts'
import { Loaded } from '../../../parts/loading.tsx'
import { More } from '../../../parts/more.tsx'
import { InstanceCard } from './instance-card.tsx'
import { InstanceForm, type Kind } from './instance-form.tsx'

type Instance = Schema<'Instance'>

/** The tenant's own providers, each with its models. Their keys can be set but are never shown. */
export function Models() {
  const concerns = ({ event }: TenantEvent) => event === 'config.changed'
  const list = useList<Instance>({ path: '/config/instances', field: 'instances', concerns })
  const kinds = useResource('kinds', () => get<Schema<'ProviderList'>>('/config/providers')).state.value.data
  const engine = useResource('routing', () => get<Schema<'EngineConfig'>>('/config/engine'), concerns)
  const isAdding = useSignal(false)
  const change = () => {
    list.reload()
    engine.reload()
  }
  // The form of the first provider stays open if its models cannot be listed.
  const onStored = () => {
    isAdding.value = true
    change()
  }
  const routing = engine.state.value.data?.routing
  const known = kinds?.providers ?? []
  return (
    <Loaded from={list}>
      {({ items }) => (
        <>
          {items.length === 0 || isAdding.value ? (
            <NewInstance kinds={known} instances={items} onStored={onStored} onDone={() => (isAdding.value = false)} />
          ) : (
            <button type="button" class="button add" onClick={() => (isAdding.value = true)}>
              Add a provider …
            </button>
          )}
          {items.map(
            (each) =>
              routing && (
                <InstanceCard key={each.name} instance={each} kinds={known} routing={routing} onChange={change} />
              ),
          )}
          <More list={list} />
        </>
      )}
    </Loaded>
  )
}

type NewInstanceProps = { kinds: readonly Kind[]; instances: readonly Instance[]; onStored(): void; onDone(): void }

const NewInstance = ({ kinds, instances, onStored, onDone }: NewInstanceProps) => (
  <section class="card" aria-label="Put in your model">
    <header>
      <h2>Put in your model</h2>
      <span class="soft small">Choose who answers, give the key, and pick one of the models that are found.</span>
    </header>
    <InstanceForm kinds={kinds} taken={instances.map(({ name }) => name)} onStored={onStored} onDone={onDone} />
  </section>
)
