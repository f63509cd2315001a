import type { Signal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'

type Routing = Schema<'Routing'>
type Role = keyof Routing

const ROLES: readonly (readonly [role: Role, meaning: string])[] = [
  ['main', 'runs and messages'],
  ['subagent', 'sub-agents'],
  ['plan', 'steps of plans'],
  ['compact', 'summaries of long conversations'],
  ['transcription', 'recordings'],
]

type RouteFieldsProps = { routing: Signal<Routing>; instances: readonly string[] }

/** A row for each role. One without a provider uses that of `main`, or the server's own. */
export const RouteFields = ({ routing, instances }: RouteFieldsProps) => (
  <div class="table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>Role</th>
          <th>Provider</th>
          <th>Model</th>
        </tr>
      </thead>
      <tbody>
        {ROLES.map(([role, meaning]) => (
          <RouteRow key={role} role={role} meaning={meaning} routing={routing} instances={instances} />
        ))}
      </tbody>
    </table>
  </div>
)

type RouteRowProps = RouteFieldsProps & { role: Role; meaning: string }

function RouteRow({ role, meaning, routing, instances }: RouteRowProps) {
  const route = routing.value[role]
  const change = (changes: { instance?: string; model?: string }) => {
    const { [role]: before, ...others } = routing.value
    const next = { instance: '', model: '', ...before, ...changes }
    routing.value = next.instance === '' ? others : { ...others, [role]: next }
  }
  return (
    <tr>
      <td>
        <strong>{role}</strong> <span class="soft small">{meaning}</span>
      </td>
      <td>
        <select
          class="input"
          aria-label={`Provider of ${role}`}
          value={route?.instance ?? ''}
          onChange={({ currentTarget }) => change({ instance: currentTarget.value })}
        >
          <option value="">default</option>
          {instances.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </td>
      <td>
        <input
          class="input"
          aria-label={`Model of ${role}`}
          placeholder={route ? 'Model' : 'default model'}
          disabled={!route}
          value={route?.model ?? ''}
          onInput={({ currentTarget }) => change({ model: currentTarget.value })}
        />
      </td>
    </tr>
  )
}
