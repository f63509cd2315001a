import { may } from '../../../api/caller.ts'
import { useKept } from '../../../api/kept-list.ts'
import { useList } from '../../../api/list.ts'
import { hrefOf, setFilters } from '../../../base/router.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Loaded } from '../../../parts/loading.tsx'
import { More } from '../../../parts/more.tsx'
import { Empty } from '../../../parts/notice.tsx'
import { PageHead } from '../../../parts/page-head.tsx'
import type { ListedFlow } from '../flow.ts'
import { FlowTable } from './flow-table.tsx'

/** The counters of the runs are stored this long after their ends. */
const COUNTED_MS = 3_000

/** The flows of the tenant, and how they have run lately. */
export function FlowList({ query }: { query: URLSearchParams }) {
  const list = useList<ListedFlow>({
    path: '/flows',
    field: 'flows',
    query: { figures: 'true' },
    concerns: ({ event }) => (event === 'flow.ended' ? COUNTED_MS : event === 'flow.changed'),
  })
  useKept(list.state, '/flows')
  return (
    <div class="page">
      <PageHead title="Flows" purpose="Agents with a fixed task: JSON in, JSON out that fits a schema.">
        <CopyAs method="GET" path="/flows" query={{ figures: 'true' }} />
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

function Found({ flows, query }: { flows: readonly ListedFlow[]; query: URLSearchParams }) {
  const shown = flows.filter((flow) => isWanted(flow, query))
  const hasOwn = flows.some((flow) => !flow.built_in)
  return (
    <>
      {!hasOwn && !query.has('state') && <NoFlows />}
      {shown.length > 0 ? <FlowTable flows={shown} /> : query.size > 0 && <NoMatch />}
    </>
  )
}

const NoFlows = () => (
  <div class="card">
    <Empty
      title="No flow of your own yet"
      how={[
        'Begin with an example: its form says what goes in, what the agent is told, and what comes out.',
        'Publish it, and run it here with a form that is made of its schema.',
        'Call it from a program by its name: the answer fits the schema, or says why not.',
      ]}
      action={
        may('flows') && (
          <a class="button main" href={hrefOf('/flows', { new: 'invoice' })}>
            Create a first flow from an example
          </a>
        )
      }
    >
      A flow takes JSON and answers JSON that fits a schema, such as an invoice's text in and its total out. Those below
      are built in.
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

const STATES: Readonly<Record<string, { label: string; has(flow: ListedFlow): boolean }>> = {
  served: { label: 'Published', has: ({ served_version }) => served_version !== null },
  draft: { label: 'With a draft', has: ({ state }) => state === 'draft' },
  own: { label: 'Our own', has: ({ built_in }) => !built_in },
  built_in: { label: 'Built in', has: ({ built_in }) => built_in },
}

/** The API lists flows by name alone, so the filters choose among those that are loaded. */
function isWanted(flow: ListedFlow, query: URLSearchParams): boolean {
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
