import { type Signal, useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { instancePath } from './models/instance-form.tsx'
import { ROLES, type Role, type Routing, rolesIn } from './models/known-models.ts'

type RouteFieldsProps = { routing: Signal<Routing>; instances: readonly string[] }

/** A row for each role. One without a provider uses that of `main`, or the server's own. */
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
  const names = [...new Set(rolesIn(routing).map(([, { instance }]) => instance))].filter((name) => name !== '')
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
  const change = (changes: { instance?: string; model?: string }) => {
    const { [role]: before, ...others } = routing.value
    const next = { instance: '', model: '', ...before, ...changes }
    routing.value = next.instance === '' ? others : { ...others, [role]: next }
  }
  return (
    <tr>
      <td>
        <strong>{capital(ROLES[role])}</strong> <span class="soft small">{role}</span>
      </td>
      <td>
        <ProviderField role={role} value={route?.instance ?? ''} instances={instances} onChange={change} />
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
  )
}

type ProviderFieldProps = {
  role: Role
  value: string
  instances: readonly string[]
  onChange(route: { instance: string; model: string }): void
}

const ProviderField = ({ role, value, instances, onChange }: ProviderFieldProps) => (
  <select
    class="input"
    aria-label={`Provider of ${role}`}
    value={value}
    onChange={({ currentTarget }) => onChange({ instance: currentTarget.value, model: '' })}
  >
    <option value="">{role === 'main' || role === 'transcription' ? 'the server’s own' : `as ${ROLES.main}`}</option>
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
