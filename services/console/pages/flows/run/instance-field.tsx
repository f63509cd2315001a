import type { Signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../../shared/client/api.ts'
import { caller, has, may } from '../../../api/caller.ts'
import { get, send } from '../../../api/engine.ts'
import { useResource } from '../../../api/resource.ts'
import { tellFailure } from '../../../base/announce.ts'
import { hrefOf } from '../../../base/router.ts'
import { SelectField } from '../../../parts/field.tsx'
import { Notice } from '../../../parts/notice.tsx'
import { TextField } from '../../../parts/text-field.tsx'

/**
 * Chooses the provider for the run; at first it is the provider of the last run. Without the scope `admin` only
 * providers of earlier runs are known.
 */
export function InstanceField({ flow, value }: { flow: string; value: Signal<string> }) {
  const known = useResource(
    flow,
    () => readInstances(flow),
    ({ event }) => event === 'config.changed',
  )
  const names = known.state.value.data
  useEffect(() => {
    if (value.peek() === '' && names?.[0] !== undefined) value.value = names[0]
  }, [names])
  if (names === undefined || names.length > 0)
    return <SelectField label="Provider" value={value} choices={names?.toSorted() ?? []} />
  return may('admin') ? (
    <NoInstance onAdded={known.reload} />
  ) : (
    <TextField label="Provider" value={value} hint="The name of an instance; an administrator knows them." isCode />
  )
}

/** The names of the instances, that of the flow's last run first. */
async function readInstances(flow: string): Promise<readonly string[]> {
  const [used, configured] = await Promise.all([
    has('dispatches')
      ? get<Schema<'DispatchList'>>('/dispatches', { flow, limit: 20 }).then(({ dispatches }) =>
          dispatches.map(({ provider_instance: name }) => name),
        )
      : [],
    may('admin')
      ? get<{ instances: readonly { name: string }[] }>('/config/instances', { limit: 200 }).then(({ instances }) =>
          instances.map(({ name }) => name),
        )
      : undefined,
  ])
  const lately = configured ? used.filter((name) => configured.includes(name)) : used
  return [...new Set([...lately, ...(configured ?? [])])]
}

/** The next step if a flow cannot run: add a provider, or use the demo. */
function NoInstance({ onAdded }: { onAdded(): void }) {
  const addDemo = () => send('PUT', '/config/instances/demo', { type: 'demo' }).then(onAdded, tellFailure)
  return (
    <Notice>
      <div class="stack close">
        <span>Flows need a provider of your own, and there is none yet.</span>
        <div class="row">
          {caller().value?.model === 'demo' && (
            <button type="button" class="button" onClick={() => void addDemo()}>
              Add the built-in demo
            </button>
          )}
          <a class="button" href={hrefOf('/settings')}>
            Configure a provider
          </a>
        </div>
      </div>
    </Notice>
  )
}
