import './activity.css'
import { hrefOf, type PageProps, setFilters } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty, Notice } from '../../parts/notice.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { newsText } from './list/columns.tsx'
import { FilterBar } from './list/filter-bar.tsx'
import { queryOf } from './list/filters.ts'
import { type LiveRuns, useLiveRuns } from './list/live-runs.ts'
import { ColumnsMenu, ViewsMenu } from './list/views-menu.tsx'
import { RunTable } from './run-table.tsx'

/** All runs, with their filters. */
export function Activity({ query }: PageProps) {
  const filters = queryOf(query)
  const runs = useLiveRuns(filters)
  const compared = query.get('compare') ?? undefined
  const path = (id: string) => hrefOf('/activity', { ...Object.fromEntries(query), compare: id })
  return (
    <div class="page">
      <PageHead title="Activity" purpose="Every run, the newest first: what it did, what it cost and how it ended.">
        {compared === undefined && (
          <a class="button wide-only" href={path('two')}>
            Compare two
          </a>
        )}
        <CopyAs method="GET" path="/runs" query={filters} />
      </PageHead>
      <FilterBar query={query}>
        <ViewsMenu query={query} />
        <ColumnsMenu />
      </FilterBar>
      {compared !== undefined && <Choosing hasFirst={compared.startsWith('run_')} />}
      <News runs={runs} />
      <Loaded from={runs}>
        {({ items, next }) =>
          items.length === 0 ? (
            <NoRuns isFiltered={Object.keys(filters).length > 0} isSearched={next === undefined} />
          ) : (
            <RunTable runs={items} compared={compared} path={path} />
          )
        }
      </Loaded>
      <More list={runs} />
    </div>
  )
}

const Choosing = ({ hasFirst }: { hasFirst: boolean }) => (
  <Notice>
    <div class="row">
      <span class="grow">
        {hasFirst ? 'Choose the run to compare it with.' : 'Choose the first of two runs to compare.'}
      </span>
      <button type="button" class="button" onClick={() => setFilters({ compare: undefined })}>
        Stop comparing
      </button>
    </div>
  </Notice>
)

/** It covers the top of the list and never moves the rows. */
function News({ runs }: { runs: LiveRuns }) {
  const { length: count } = runs.news
  return (
    <div class="news" role="status">
      {count > 0 && runs.state.value.data !== undefined && (
        <button
          type="button"
          class="button main"
          onClick={() => {
            runs.showNews()
            document.getElementById('page')?.scrollTo(0, 0)
          }}
        >
          {newsText(count, runs.isAllNew)}
        </button>
      )}
    </div>
  )
}

/** One request looks at 50,000 runs at most (D20). */
const NoRuns = ({ isFiltered, isSearched }: { isFiltered: boolean; isSearched: boolean }) =>
  isFiltered ? (
    <Empty
      title={isSearched ? 'No run matches' : 'No run matches so far'}
      action={
        <a class="button" href={hrefOf('/activity')}>
          Clear the filters
        </a>
      }
    >
      {!isSearched && 'The newest runs were looked at: “Show more” looks further back.'}
    </Empty>
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
