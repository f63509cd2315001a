import { type Signal, useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { instancePath } from './models/instance-form.tsx'
import { ROLES, type Role, type Routing, rolesIn } from './models/known-models.ts'

type RouteFieldsProps = { routing: Signal<Routing>; instances: readonly string[] }

/** The provider and model of each role. A role without a provider uses that of `main`, or the server's own. */
export function RouteFields({ routing, instances }: RouteFieldsProps) {
  const found = useFound(routing.value)
  return (
    <div class="table-wrap">
      <table class="table cards">
        <thead>
          <tr>
            <th>For</th>
            <th>Provider</th>
            <th>Model</th>
          </tr>
        </thead>
        <tbody>
          {(Object.keys(ROLES) as Role[]).map((role) => (
            <RouteRow key={role} role={role} routing={routing} instances={instances} found={found} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

type Found = Readonly<Record<string, readonly string[]>>

/** The models that were found at the providers that the routing names. */
function useFound(routing: Routing): Found {
  const named = rolesIn(routing).flatMap(([, { instance, fallback_instance: second = '' }]) => [instance, second])
  const names = [...new Set(named)].filter((name) => name !== '')
  const read = async (name: string) => {
    const { discovery } = await get<Schema<'Capabilities'>>(`${instancePath(name)}/capabilities`)
    return [name, discovery?.models.map(({ id }) => id) ?? []] as const
  }
  const load = async () => Object.fromEntries(await Promise.all(names.map(read)))
  return useResource(names.join(), load).state.value.data ?? {}
}

type RouteRowProps = RouteFieldsProps & { role: Role; found: Found }

function RouteRow({ role, routing, instances, found }: RouteRowProps) {
  const route = routing.value[role]
  const change = (changes: Partial<Route>) => {
    const { [role]: before, ...others } = routing.value
    const next = routeOf({ instance: '', model: '', ...before, ...changes })
    routing.value = next.instance === '' ? others : { ...others, [role]: next }
  }
  return (
    <>
      <tr>
        <td>
          <strong>{capital(ROLES[role])}</strong> <span class="soft small">{role}</span>
        </td>
        <td>
          <ProviderField
            label={`Provider of ${role}`}
            none={role === 'main' || role === 'transcription' ? 'the server’s own' : `as ${ROLES.main}`}
            value={route?.instance ?? ''}
            instances={instances}
            onChange={(instance) => change({ instance, model: '' })}
          />
        </td>
        <td>
          {route && (
            <ModelField
              label={`Model of ${role}`}
              value={route.model}
              models={found[route.instance] ?? []}
              onChange={(model) => change({ model })}
            />
          )}
        </td>
      </tr>
      {route && role !== 'transcription' && (
        <SecondModel role={role} route={route} instances={instances} found={found} onChange={change} />
      )}
    </>
  )
}

type Route = NonNullable<Routing[Role]>

/** The route without fields that equal their defaults. `order` is kept only if there is a second model. */
function routeOf({ strategy = 'order', hedge = false, ...route }: Route): Route {
  const { instance, model, fallback_instance: second = '', fallback_model: secondModel = '' } = route
  const fallback = second !== '' && { fallback_instance: second, fallback_model: secondModel }
  const order = fallback && strategy !== 'order' && { strategy }
  return { instance, model, ...fallback, ...order, ...(hedge && { hedge }) }
}

const STRATEGIES: Readonly<Record<NonNullable<Route['strategy']>, readonly [name: string, meaning: string]>> = {
  order: ['In this order', 'The second model is called when the first one fails.'],
  cheapest: ['The cheapest', 'The one whose tokens cost less is called first, if it can do what the run needs.'],
  least_waiting: ['The least waiting', 'The one for which fewer calls wait is called first.'],
}

type SecondModelProps = Omit<RouteRowProps, 'routing'> & { route: Route; onChange(changes: Partial<Route>): void }

/** The settings for the fallback model, for the order of calls, and for repeating a late request (D56). */
function SecondModel({ role, route, instances, found, onChange }: SecondModelProps) {
  const { fallback_instance: second = '', fallback_model: model = '', strategy = 'order', hedge = false } = route
  return (
    <tr>
      <td class="whole" colSpan={3}>
        <details open={second !== '' || hedge}>
          <summary>Second model of {role}, and late answers</summary>
          <div class="form-grid">
            <ProviderField
              label={`Second provider of ${role}`}
              none="none"
              value={second}
              instances={instances}
              onChange={(name) => onChange({ fallback_instance: name, fallback_model: '' })}
            />
            {second !== '' && (
              <ModelField
                label={`Second model of ${role}`}
                value={model}
                models={found[second] ?? []}
                onChange={(name) => onChange({ fallback_model: name })}
              />
            )}
          </div>
          {second !== '' && <OrderField role={role} value={strategy} onChange={onChange} />}
          <Choice
            type="checkbox"
            name={`hedge of ${role}`}
            isOn={hedge}
            text={HEDGE}
            onChange={() => onChange({ hedge: !hedge })}
          />
        </details>
      </td>
    </tr>
  )
}

type Strategy = keyof typeof STRATEGIES
type OrderFieldProps = { role: Role; value: Strategy; onChange(changes: Partial<Route>): void }

const OrderField = ({ role, value, onChange }: OrderFieldProps) => (
  <>
    {(Object.keys(STRATEGIES) as Strategy[]).map((strategy) => (
      <Choice
        key={strategy}
        type="radio"
        name={`strategy of ${role}`}
        isOn={value === strategy}
        text={STRATEGIES[strategy]}
        onChange={() => onChange({ strategy })}
      />
    ))}
  </>
)

const HEDGE: readonly [name: string, meaning: string] = [
  'Ask twice when it is late',
  'When a run that somebody reads has no answer within the time of 95 in 100 calls, a second request goes out; both cost.',
]

type ChoiceProps = {
  type: 'radio' | 'checkbox'
  name: string
  isOn: boolean
  text: readonly [string, string]
  onChange(): void
}

const Choice = ({ type, name, isOn, text: [title, meaning], onChange }: ChoiceProps) => (
  <label class="row tight">
    <input type={type} name={name} checked={isOn} onChange={onChange} />
    <span>
      {title}: <span class="soft">{meaning}</span>
    </span>
  </label>
)

type ProviderFieldProps = {
  label: string
  /** What holds without a provider. */
  none: string
  value: string
  instances: readonly string[]
  onChange(name: string): void
}

const ProviderField = ({ label, none, value, instances, onChange }: ProviderFieldProps) => (
  <select
    class="input"
    aria-label={label}
    value={value}
    onChange={({ currentTarget }) => onChange(currentTarget.value)}
  >
    <option value="">{none}</option>
    {instances.map((name) => (
      <option key={name} value={name}>
        {name}
      </option>
    ))}
  </select>
)

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

type ModelFieldProps = { label: string; value: string; models: readonly string[]; onChange(model: string): void }

const OTHER = '\u0000'

/** One of the models that were found, or the name of another one. */
function ModelField({ label, value, models, onChange }: ModelFieldProps) {
  const isOther = useSignal(false)
  if (models.length === 0 || isOther.value || (value !== '' && !models.includes(value)))
    return (
      <input
        class="input"
        aria-label={label}
        placeholder="Name of the model"
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    )
  return (
    <select
      class="input"
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => {
        isOther.value = currentTarget.value === OTHER
        onChange(isOther.value ? '' : currentTarget.value)
      }}
    >
      <option value="">Choose one …</option>
      {models.map((id) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
      <option value={OTHER}>another one …</option>
    </select>
  )
}
