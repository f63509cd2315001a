import { type Signal, useSignal } from '@preact/signals'
import { type Caller, caller } from '../../../api/caller.ts'
import { get, send } from '../../../api/engine.ts'
import { duration, short } from '../../../base/format.ts'
import { hrefOf } from '../../../base/router.ts'
import { Icon } from '../../../parts/icon.tsx'
import { Notice } from '../../../parts/notice.tsx'
import { inWords } from '../in-words.ts'
import { instancePath } from './instance-form.tsx'
import { type Model, ROLES, type Role, type Routing, routed } from './known-models.ts'

/** How many models of a long list are shown until the person asks for the others. */
const SHOWN = 8

type ModelListProps = { name: string; models: readonly Model[]; routing: Routing; onChange(): void }

/** The models of a provider, from which the person chooses one to test and use. */
export function ModelList({ name, models, routing, onChange }: ModelListProps) {
  const chosen = useSignal(models[0]?.id ?? '')
  const text = useSignal('')
  const isWhole = useSignal(false)
  const matching = models.filter(({ id }) => id.includes(text.value.trim()))
  const shown = isWhole.value ? matching : matching.slice(0, SHOWN)
  return (
    <>
      {models.length > SHOWN && (
        <div class="model-filter">
          <input
            class="input"
            type="search"
            aria-label={`Filter the models of ${name}`}
            placeholder={`Find one of ${models.length}`}
            value={text.value}
            onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          />
        </div>
      )}
      <ModelTable name={name} models={shown} chosen={chosen} />
      {matching.length > shown.length && (
        <button type="button" class="button plain show-all" onClick={() => (isWhole.value = true)}>
          Show all {matching.length}
        </button>
      )}
      <UseModel
        key={chosen.value}
        name={name}
        model={models.find(({ id }) => id === chosen.value)}
        routing={routing}
        onChange={onChange}
      />
    </>
  )
}

type ModelTableProps = { name: string; models: readonly Model[]; chosen: Signal<string> }

const ModelTable = ({ name, models, chosen }: ModelTableProps) => (
  <div class="table-wrap">
    <table class="table cards models">
      <thead>
        <tr>
          <th>Model</th>
          <th>Answers</th>
          <th class="right">Context</th>
          <th class="right" title="US dollars per million tokens">
            Input / output
          </th>
          <th>Can</th>
        </tr>
      </thead>
      <tbody>
        {models.map((model) => (
          <ModelRow key={model.id} name={name} model={model} chosen={chosen} />
        ))}
      </tbody>
    </table>
  </div>
)

function ModelRow({ name, model, chosen }: { name: string; model: Model; chosen: Signal<string> }) {
  const { id, context, price, probe, roles } = model
  return (
    <tr>
      <td class="whole">
        <label class="row tight">
          <input
            type="radio"
            name={`model of ${name}`}
            checked={chosen.value === id}
            onChange={() => (chosen.value = id)}
          />
          <span>{id}</span>
        </label>
      </td>
      <td class={roles.length === 0 ? 'whole none' : 'whole'}>
        <span class="soft">{roles.map((role) => ROLES[role]).join(', ') || '–'}</span>
      </td>
      <td class={context === undefined ? 'right none' : 'right number'}>
        {context === undefined ? <span class="soft">–</span> : short(context)}
        {context !== undefined && <span class="unit"> tokens</span>}
      </td>
      <td class={price ? 'right number' : 'right none'}>
        {price ? `$${price.input} / $${price.output}` : <span class="soft">–</span>}
      </td>
      <td class="whole">{probe ? <Abilities probe={probe} /> : <span class="soft small">not tried</span>}</td>
    </tr>
  )
}

const Abilities = ({ probe }: { probe: NonNullable<Model['probe']> }) => (
  <span class="row abilities" title={`First part after ${duration(probe.latency_ms)}`}>
    {Object.entries(probe.capabilities).map(([ability, can]) => (
      <span key={ability} class={can ? 'badge good' : 'badge'}>
        <Icon name={can ? 'check' : 'dash'} />
        {ability === 'structured_output' ? 'schemas' : ability}
        <span class="visually-hidden">{can ? ': yes' : ': no'}</span>
      </span>
    ))}
  </span>
)

type Said = { tone: 'info' | 'bad'; text: string }
type UseModelProps = { name: string; model: Model | undefined; routing: Routing; onChange(): void }

/** Tests the chosen model, and uses it for everything or for one role. */
function UseModel({ name, model, routing, onChange }: UseModelProps) {
  const role = useSignal<Role | 'everything'>('everything')
  const isBusy = useSignal(false)
  const said = useSignal<Said | undefined>(undefined)
  if (!model) return null
  const act = async (work: () => Promise<string>) => {
    isBusy.value = true
    const fail = (cause: unknown): Said => ({ tone: 'bad', text: inWords({ model: 'Model' })(cause) })
    said.value = await work().then((text) => ({ tone: 'info', text }), fail)
    isBusy.value = false
    onChange()
  }
  const start = () => use(routed(routing, role.value, { instance: name, model: model.id }), role.value)
  return (
    <div class="use-model stack close">
      <div class="row">
        <strong class="grow cut">{model.id}</strong>
        <button
          type="button"
          class="button"
          disabled={isBusy.value}
          onClick={() => void act(() => tryOut(name, model))}
        >
          {isBusy.value ? 'Working …' : 'Try it'}
        </button>
        <RoleField label={`What ${model.id} is used for`} role={role} />
        <button type="button" class="button main" disabled={isBusy.value} onClick={() => void act(start)}>
          Use for {role.value === 'everything' ? 'everything' : 'this'}
        </button>
      </div>
      {said.value && (
        <Notice tone={said.value.tone}>
          {said.value.text} {said.value.tone === 'info' && <a href={hrefOf('/chat', { new: '1' })}>Start a chat</a>}
        </Notice>
      )}
    </div>
  )
}

const RoleField = ({ label, role }: { label: string; role: Signal<Role | 'everything'> }) => (
  <select
    class="input"
    aria-label={label}
    value={role.value}
    onChange={({ currentTarget }) => (role.value = currentTarget.value as Role)}
  >
    <option value="everything">everything</option>
    {Object.entries(ROLES).map(([each, meaning]) => (
      <option key={each} value={each}>
        {meaning}
      </option>
    ))}
  </select>
)

/** Returns the result of a short test conversation with the model. */
async function tryOut(name: string, { id }: Model): Promise<string> {
  const path = `${instancePath(name)}/probe`
  const { latency_ms: ms } = await send<NonNullable<Model['probe']>>('POST', path, { model: id })
  return `${id} answered after ${duration(ms)}.`
}

async function use(routing: Routing, role: Role | 'everything'): Promise<string> {
  await send('PUT', '/config/engine', { routing })
  caller().value = await get<Caller>('/me') // The model for runs that name no model.
  return `It answers ${role === 'everything' ? 'everything' : ROLES[role]} from the next turn on.`
}
