import { may } from '../../../api/caller.ts'
import { useList } from '../../../api/list.ts'
import { hrefOf, setFilters } from '../../../base/router.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Loaded } from '../../../parts/loading.tsx'
import { More } from '../../../parts/more.tsx'
import { Empty } from '../../../parts/notice.tsx'
import { PageHead } from '../../../parts/page-head.tsx'
import type { FlowHead } from '../flow.ts'
import { FlowTable } from './flow-table.tsx'

/** Each row reads its own numbers, so a page has few. */
const PAGE = 25

/** The flows of the tenant, and how they have run lately. */
export function FlowList({ query }: { query: URLSearchParams }) {
  const list = useList<FlowHead>({
    path: '/flows',
    field: 'flows',
    query: { limit: PAGE },
    concerns: ({ event }) => event === 'flow.changed',
    isKept: true,
  })
  return (
    <div class="page">
      <PageHead title="Flows" purpose="Agents with a fixed task: JSON in, JSON out that fits a schema.">
        <CopyAs method="GET" path="/flows" />
        {may('flows') && (
          <a class="button" href={hrefOf('/flows', { new: 'invoice' })}>
            New flow
          </a>
        )}
      </PageHead>
      <div class="row">
        <Filters query={query} />
      </div>
      <Loaded from={list}>{({ items }) => <Found flows={items} query={query} />}</Loaded>
      <More list={list} />
    </div>
  )
}

function Found({ flows, query }: { flows: readonly FlowHead[]; query: URLSearchParams }) {
  const shown = flows.filter((flow) => isWanted(flow, query))
  const hasOwn = flows.some((flow) => !flow.built_in)
  return (
    <>
      {!hasOwn && !query.has('state') && <NoFlows />}
      {shown.length > 0 ? <FlowTable flows={shown} /> : <NoMatch />}
    </>
  )
}

const NoFlows = () => (
  <div class="card">
    <Empty
      title="No flow of your own yet"
      action={
        may('flows') && (
          <a class="button main" href={hrefOf('/flows', { new: 'invoice' })}>
            Create a first flow from an example
          </a>
        )
      }
    >
      A flow takes JSON and answers JSON that fits a schema, every time. Those below are built in.
    </Empty>
  </div>
)

const NoMatch = () => (
  <Empty
    title="No flow matches"
    action={
      <a class="button" href={hrefOf('/flows')}>
        Clear the filters
      </a>
    }
  />
)

const STATES: Readonly<Record<string, { label: string; has(flow: FlowHead): boolean }>> = {
  served: { label: 'Served', has: ({ served_version }) => served_version !== null },
  draft: { label: 'With a draft', has: ({ state }) => state === 'draft' },
  own: { label: 'Our own', has: ({ built_in }) => !built_in },
  built_in: { label: 'Built in', has: ({ built_in }) => built_in },
}

/** The API lists flows by name alone, so the filters choose among those that are loaded. */
function isWanted(flow: FlowHead, query: URLSearchParams): boolean {
  const name = query.get('name')?.toLowerCase() ?? ''
  return flow.name.includes(name) && (STATES[query.get('state') ?? '']?.has(flow) ?? true)
}

/** Filters are part of the address: a copied address is a saved view. */
const Filters = ({ query }: { query: URLSearchParams }) => (
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
