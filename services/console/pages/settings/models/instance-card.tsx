import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Schema } from '../../../../../shared/client/api.ts'
import { get, send } from '../../../api/engine.ts'
import { useResource } from '../../../api/resource.ts'
import { tellFailure } from '../../../base/announce.ts'
import { percent } from '../../../base/format.ts'
import { DeleteButton } from '../../../parts/delete-button.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Ago } from '../../../parts/time.tsx'
import { InstanceForm, instancePath, KIND_NAMES, type Kind } from './instance-form.tsx'
import { type InstanceState, modelsOf, type Routing, rolesIn, stateOf } from './known-models.ts'
import { ModelList } from './model-list.tsx'

type Instance = Schema<'Instance'>
type CardProps = { instance: Instance; kinds: readonly Kind[]; routing: Routing; onChange(): void }

/** The card of one provider: its state, its models, and its settings. */
export function InstanceCard({ instance, kinds, routing, onChange }: CardProps) {
  const { name, type, updated_at: at } = instance
  const path = instancePath(name)
  const isEditing = useSignal(false)
  // A change of the provider drops the results found for it.
  const known = useResource(`${path} ${at}`, () => get<Schema<'Capabilities'>>(`${path}/capabilities`))
  const found = known.state.value.data
  const models = modelsOf({ instance, kind: kinds.find((each) => each.type === type), found, routing })
  const change = () => {
    known.reload()
    onChange()
  }
  const onDone = () => {
    isEditing.value = false
    change()
  }
  return (
    <section class="card instance" aria-label={name}>
      <Head instance={instance} isEditing={isEditing} onDeleted={onChange}>
        <StateOf state={stateOf(found, useRuns(instance, routing))} />
      </Head>
      {isEditing.value && <InstanceForm kinds={kinds} instance={instance} onStored={onChange} onDone={onDone} />}
      {models.length > 0 && <ModelList name={name} models={models} routing={routing} onChange={change} />}
      {found && !found.discovery && <Look path={path} onDone={known.reload} />}
      {found && found.room.length > 0 && <Room room={found.room} />}
    </section>
  )
}

type HeadProps = { instance: Instance; isEditing: Signal<boolean>; onDeleted(): void; children: ComponentChildren }

const Head = ({ instance: { name, type, url, key }, isEditing, onDeleted, children }: HeadProps) => (
  <header>
    <h2>{name}</h2>
    {children}
    <span class="grow cut soft small">
      {[KIND_NAMES[type] ?? type, url, key !== null && `key ${key}`].filter(Boolean).join(' · ')}
    </span>
    {type !== 'demo' && (
      <button
        type="button"
        class="button"
        aria-expanded={isEditing.value}
        onClick={() => (isEditing.value = !isEditing.value)}
      >
        Edit
      </button>
    )}
    <DeleteButton what={`the provider ${name}`} path={instancePath(name)} onDeleted={onDeleted}>
      Its key is deleted. What the routing sends to it fails until the routing names another one.
    </DeleteButton>
  </header>
)

/** The newest runs of a model that is routed to this provider. */
function useRuns({ name }: Instance, routing: Routing): readonly Schema<'Run'>[] {
  const model = rolesIn(routing).find(([, route]) => route.instance === name)?.[1].model
  const load = async () =>
    model === undefined ? [] : (await get<Schema<'ListRunsResponse'>>('/runs', { model, limit: 20 })).runs
  return useResource(`runs of ${model}`, load, ({ event }) => event === 'run.ended').state.value.data ?? []
}

const StateOf = ({ state: { tone, word, at } }: { state: InstanceState }) => (
  <span class={`badge ${tone}`}>
    <Icon name={tone === 'good' ? 'check' : tone === '' ? 'dash' : 'warn'} />
    <span>
      {word} {at && <Ago at={at} />}
    </span>
  </span>
)

/** A provider whose models were not listed yet. */
function Look({ path, onDone }: { path: string; onDone(): void }) {
  const isBusy = useSignal(false)
  const look = async () => {
    isBusy.value = true
    await send('POST', `${path}/discover`).catch(tellFailure)
    isBusy.value = false
    onDone()
  }
  return (
    <div class="row use-model">
      <span class="grow soft">Which models it has is not known yet.</span>
      <button type="button" class="button" disabled={isBusy.value} onClick={() => void look()}>
        Look for models
      </button>
    </div>
  )
}

/** How much of the provider's limits each model has used in the last minute. */
const Room = ({ room }: { room: Schema<'Capabilities'>['room'] }) => (
  <details class="room">
    <summary class="soft">Room at the provider, last minute</summary>
    <div class="table-wrap">
      <table class="table">
        <thead>
          <tr>
            <th>Model</th>
            <th class="right">Tokens</th>
            <th class="right">Requests</th>
            <th class="right">At work</th>
            <th class="right">Waiting</th>
            <th class="right">Refused</th>
            <th class="right">Failed of late</th>
          </tr>
        </thead>
        <tbody>
          {room.map((each) => (
            <tr key={each.model}>
              <td>{each.model}</td>
              <td class="right">{used(each.used_tokens, each.tokens_per_minute)}</td>
              <td class="right">{used(each.used_requests, each.requests_per_minute)}</td>
              <td class="right">{each.at_work}</td>
              <td class="right">{each.waiting}</td>
              <td class="right">{each.refused}</td>
              <td class="right">{percent(each.error_rate)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </details>
)

const used = (count: number, limit: number | null) =>
  count.toLocaleString('en') + (limit === null ? '' : ` of ${limit.toLocaleString('en')}`)
