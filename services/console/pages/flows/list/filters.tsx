import { setFilters } from '../../../base/router.ts'
import type { FlowHead } from '../flow.ts'

const STATES: Readonly<Record<string, { label: string; has(flow: FlowHead): boolean }>> = {
  served: { label: 'Served', has: ({ served_version }) => served_version !== null },
  draft: { label: 'With a draft', has: ({ state }) => state === 'draft' },
  own: { label: 'Our own', has: ({ built_in }) => !built_in },
  built_in: { label: 'Built in', has: ({ built_in }) => built_in },
}

/** The API lists flows by name alone, so the filters choose among those that are loaded. */
export function isWanted(flow: FlowHead, query: URLSearchParams): boolean {
  const name = query.get('name')?.toLowerCase() ?? ''
  return flow.name.includes(name) && (STATES[query.get('state') ?? '']?.has(flow) ?? true)
}

/** Filters are part of the address: a copied address is a saved view. */
export const Filters = ({ query }: { query: URLSearchParams }) => (
  <>
    <select
      class="input"
      aria-label="state"
      value={query.get('state') ?? ''}
      onChange={({ currentTarget }) => setFilters({ state: currentTarget.value })}
    >
      <option value="">All flows</option>
      {Object.entries(STATES).map(([state, { label }]) => (
        <option key={state} value={state}>
          {label}
        </option>
      ))}
    </select>
    <input
      class="input name-filter"
      type="search"
      aria-label="name"
      placeholder="Name"
      value={query.get('name') ?? ''}
      onInput={({ currentTarget }) => setFilters({ name: currentTarget.value.trim() })}
    />
  </>
)
