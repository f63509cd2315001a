import { setFilters } from '../../base/router.ts'
import { DraftInput } from '../../parts/draft-input.tsx'

/** The filters of the API that the address may hold. */
export const FILTERS = ['kind', 'status', 'code', 'model', 'subject', 'session_id', 'customer_id', 'min_cost'] as const

const CHOICES = {
  kind: { label: 'All kinds', values: ['run', 'message', 'flow', 'plan', 'step'] },
  status: { label: 'Any state', values: ['running', 'waiting', 'done', 'failed', 'cancelled'] },
  span: { label: 'Any time', values: ['1h', '24h', '7d'] },
} as const

/** Filters are part of the address: a copied address is a saved view. */
export const Filters = ({ query }: { query: URLSearchParams }) => (
  <>
    {Object.entries(CHOICES).map(([name, { label, values }]) => (
      <select
        key={name}
        class="input"
        aria-label={name}
        value={query.get(name) ?? ''}
        onChange={({ currentTarget }) => setFilters({ [name]: currentTarget.value })}
      >
        <option value="">{label}</option>
        {values.map((value) => (
          <option key={value} value={value}>
            {name === 'span' ? `Last ${value}` : value}
          </option>
        ))}
      </select>
    ))}
    <TextFilter name="model" query={query} />
    <TextFilter name="subject" query={query} />
    {FILTERS.slice(5)
      .filter((name) => query.has(name))
      .map((name) => (
        <button key={name} type="button" class="button" onClick={() => setFilters({ [name]: undefined })}>
          {name}: {query.get(name)} ✕
        </button>
      ))}
  </>
)

const TextFilter = ({ name, query }: { name: string; query: URLSearchParams }) => (
  <DraftInput
    label={name}
    class="input text-filter"
    isSearch
    placeholder={name === 'subject' ? 'Started by' : 'Model'}
    value={query.get(name) ?? ''}
    onCommit={(text) => setFilters({ [name]: text })}
  />
)
