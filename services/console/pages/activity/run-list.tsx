import type { Schema } from '../../../../shared/client/api.ts'
import { useList } from '../../api/list.ts'
import { serverNow } from '../../base/clock.ts'
import { hrefOf } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { FILTERS, Filters } from './filters.tsx'
import { RunTable } from './run-table.tsx'

const SPANS_MS: Readonly<Record<string, number>> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 }

export function RunList({ query }: { query: URLSearchParams }) {
  const filters = filtersOf(query)
  const concerns = ({ event }: { event: string }) => event.startsWith('run.')
  const list = useList<Schema<'Run'>>({ path: '/runs', field: 'runs', query: filters, concerns, isKept: true })
  const isFiltered = Object.keys(filters).length > 0
  return (
    <div class="page">
      <PageHead title="Activity" purpose="Every run, the newest first: what it did, what it cost and how it ended.">
        <CopyAs method="GET" path="/runs" query={filters} />
      </PageHead>
      <div class="row">
        <Filters query={query} />
      </div>
      <Loaded from={list}>
        {({ items }) => (items.length === 0 ? <NoRuns isFiltered={isFiltered} /> : <RunTable runs={items} />)}
      </Loaded>
      <More list={list} />
    </div>
  )
}

/** The filters of the address as those of the API. Spans begin at a full minute, so that the list is not read again all the time. */
function filtersOf(query: URLSearchParams): Record<string, string> {
  const given = FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name) ?? ''] as const] : []))
  const spanMs = SPANS_MS[query.get('span') ?? '']
  const since =
    spanMs === undefined ? undefined : new Date(Math.floor((serverNow() - spanMs) / 60_000) * 60_000).toISOString()
  return { ...Object.fromEntries(given), ...(since !== undefined && { since }) }
}

const NoRuns = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <Empty
      title="No run matches"
      action={
        <a class="button" href={hrefOf('/activity')}>
          Clear the filters
        </a>
      }
    />
  ) : (
    <Empty
      title="Nothing has run yet"
      action={
        <a class="button main" href={hrefOf('/chat', { try: 'permission' })}>
          Start the first chat
        </a>
      }
    >
      Every run, message, flow and step of a plan is listed here, with what it used and how it ended.
    </Empty>
  )
