import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { get, send } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { tellFailure } from '../../base/announce.ts'
import { counted, duration } from '../../base/format.ts'
import { DeleteButton } from '../../parts/delete-button.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Json } from '../../parts/json.tsx'
import { Ago } from '../../parts/time.tsx'

type InstanceCardProps = { instance: Schema<'Instance'>; onChange(): void }

/** One provider: which models it has, and what each can do when it is asked. */
export function InstanceCard({ instance, onChange }: InstanceCardProps) {
  const { name, type, url, key, prices } = instance
  const path = `/config/instances/${encodeURIComponent(name)}`
  return (
    <section class="card padded stack close" aria-label={name}>
      <div class="row">
        <h2 class="grow">{name}</h2>
        <span class="badge">{type}</span>
        <DeleteButton what={`the provider ${name}`} path={path} onDeleted={onChange}>
          Its key is deleted. What the routing sends to it fails until the routing names another one.
        </DeleteButton>
      </div>
      <p class="soft small">{url ?? 'The address of the provider itself'}</p>
      {key !== null && <p class="small">Key {key}</p>}
      {prices && (
        <details class="small">
          <summary>Prices of {counted(Object.keys(prices).length, 'model')}</summary>
          <Json value={prices} />
        </details>
      )}
      <Abilities path={path} />
    </section>
  )
}

function Abilities({ path }: { path: string }) {
  const known = useResource(path, () => get<Schema<'Capabilities'>>(`${path}/capabilities`))
  const isBusy = useSignal(false)
  const act = async (request: () => Promise<unknown>) => {
    isBusy.value = true
    await request().catch(tellFailure)
    isBusy.value = false
    known.reload()
  }
  const { discovery, probes = [], room = [] } = known.state.value.data ?? {}
  const models = discovery?.models.map(({ id }) => id) ?? []
  return (
    <>
      <div class="row">
        <button
          type="button"
          class="button"
          disabled={isBusy.value}
          onClick={() => void act(() => send('POST', `${path}/discover`))}
        >
          Look for models
        </button>
        {discovery && <span class="soft small">{counted(models.length, 'model')}</span>}
      </div>
      {models.length > 0 && (
        <Models
          models={models}
          isBusy={isBusy.value}
          onProbe={(model) => void act(() => send('POST', `${path}/probe`, { model }))}
        />
      )}
      {probes.map((probe) => (
        <ProbeLine key={probe.model} probe={probe} />
      ))}
      {room.map((each) => (
        <RoomLine key={each.model} room={each} />
      ))}
    </>
  )
}

type RoomLineProps = { room: Schema<'Capabilities'>['room'][number] }

/** How much of the provider's limits a model uses. */
function RoomLine({ room }: RoomLineProps) {
  const { model, tokens_per_minute: tokens, requests_per_minute: requests } = room
  const of = (limit: number | null) => (limit === null ? '' : ` of ${limit.toLocaleString('en')}`)
  return (
    <p class="soft small">
      {model}, last minute: {room.used_tokens.toLocaleString('en')}
      {of(tokens)} tokens, {room.used_requests.toLocaleString('en')}
      {of(requests)} requests, {room.at_work} at work, {room.waiting} waiting, {room.refused} refused by the provider
    </p>
  )
}

type ModelsProps = { models: readonly string[]; isBusy: boolean; onProbe(model: string): void }

function Models({ models, isBusy, onProbe }: ModelsProps) {
  const chosen = useSignal(models[0] ?? '')
  return (
    <div class="row">
      <select
        class="input grow"
        aria-label="Model"
        value={chosen.value}
        onChange={({ currentTarget }) => (chosen.value = currentTarget.value)}
      >
        {models.map((id) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
      <button type="button" class="button" disabled={isBusy} onClick={() => onProbe(chosen.value)}>
        Try it
      </button>
    </div>
  )
}

const ProbeLine = ({ probe }: { probe: Schema<'Probe'> }) => (
  <p class="small row">
    <strong>{probe.model}</strong>
    {Object.entries(probe.capabilities).map(([name, can]) => (
      <span key={name} class={can ? 'badge good' : 'badge'}>
        <Icon name={can ? 'check' : 'dash'} />
        {name.replaceAll('_', ' ')}
        <span class="visually-hidden">{can ? ': yes' : ': no'}</span>
      </span>
    ))}
    <span class="soft">
      {duration(probe.latency_ms)}, <Ago at={probe.probed_at} />
    </span>
  </p>
)
