import type { Schema } from '../../../../shared/client/api.ts'
import { may } from '../../api/caller.ts'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'
import { money, short } from '../../base/format.ts'
import type { PageProps } from '../../base/page-props.ts'
import { hrefOf, setFilters } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Figure, Figures } from '../../parts/figures.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import type { Bucket } from './bars.ts'
import { startOf } from './start-of.ts'
import { FIELDS, MEASURES, type Measure, measureOf, type Row, type Sum, sumsOf } from './sums.ts'
import { UsageChart } from './usage-chart.tsx'
import { UsageTable } from './usage-table.tsx'
import './usage.css'
import { saveFile } from '../../base/save-file.ts'

const BY = ['model', 'kind', 'flow', 'customer', 'subject'] as const
const SPANS: Readonly<Record<string, { days: number; bucket: Bucket; label: string }>> = {
  '1d': { days: 1, bucket: 'hour', label: 'Last 24 hours' },
  '7d': { days: 7, bucket: 'day', label: 'Last 7 days' },
  '30d': { days: 30, bucket: 'day', label: 'Last 30 days' },
}
/** Pages of rows that are added up. */
const MOST_PAGES = 10

/** The usage of the tenant's runs, by day or hour. */
export function Usage({ query }: PageProps) {
  const by = query.get('by') ?? 'model'
  const span = SPANS[query.get('span') ?? ''] ?? { days: 7, bucket: 'day' as const }
  const from = startOf(span, serverNow())
  const request = { by, bucket: span.bucket, from }
  const rows = useResource(
    JSON.stringify(request),
    () => readRows(request),
    ({ event }) => event === 'run.ended',
  )
  const measure = measureOf(query.get('measure'), rows.state.value.data ?? [])
  return (
    <div class="page">
      <PageHead title="Usage" purpose="What the runs of your tenant used and cost, by day or hour.">
        <button
          type="button"
          class="button"
          disabled={!rows.state.value.data?.length}
          onClick={() => downloadCsv(rows.state.value.data ?? [])}
        >
          Save as CSV
        </button>
        <CopyAs method="GET" path="/usage" query={request} />
      </PageHead>
      <div class="row">
        <Choices {...{ measure, by }} span={query.get('span') ?? '7d'} />
      </div>
      <Loaded from={rows}>
        {(found) =>
          found.length === 0 ? <Nothing /> : <Found rows={found} {...{ measure, from }} bucket={span.bucket} />
        }
      </Loaded>
    </div>
  )
}

const Choices = ({ measure, by, span }: { measure: Measure; by: string; span: string }) => (
  <>
    <Choice
      name="measure"
      value={measure}
      choices={Object.keys(MEASURES)}
      label={(each) => MEASURES[each as Measure].label}
    />
    <Choice name="by" value={by} choices={BY} label={(each) => `By ${each}`} />
    <Choice name="span" value={span} choices={Object.keys(SPANS)} label={(each) => SPANS[each]?.label ?? each} />
  </>
)

async function readRows(query: Record<string, string>): Promise<readonly Row[]> {
  const rows: Row[] = []
  let cursor: string | undefined
  for (let page = 0; page < MOST_PAGES; page++) {
    const answer = await get<Schema<'UsageResponse'>>('/usage', { ...query, limit: 200, cursor })
    rows.push(...answer.rows)
    cursor = answer.next_cursor ?? undefined
    if (cursor === undefined) break
  }
  return rows
}

type FoundProps = { rows: readonly Row[]; measure: Measure; bucket: Bucket; from: string }

function Found({ rows, measure, bucket, from }: FoundProps) {
  const sums = sumsOf(rows, measure)
  return (
    <>
      <Totals sums={sums} />
      <div class="usage-columns">
        <section class="card padded" aria-label="Chart">
          <UsageChart {...{ rows, sums, measure, bucket }} span={{ from: Date.parse(from), to: serverNow() }} />
        </section>
        <UsageTable sums={sums} />
      </div>
    </>
  )
}

function Totals({ sums }: { sums: readonly Sum[] }) {
  const total = (field: (typeof FIELDS)[number]) => sums.reduce((sum, each) => sum + each[field], 0)
  return (
    <Figures>
      <Figure name="Spent" used={total('cost_usd')} show={money} />
      <Figure name="Tokens" used={total('input_tokens') + total('output_tokens')} show={short} />
      <Figure name="Runs" used={total('runs')} show={short} />
      <Figure name="Failed" used={total('failed')} show={short} />
    </Figures>
  )
}

type ChoiceProps = { name: string; value: string; choices: readonly string[]; label(choice: string): string }

const Choice = ({ name, value, choices, label }: ChoiceProps) => (
  <select
    class="input"
    aria-label={name}
    value={value}
    onChange={({ currentTarget }) => setFilters({ [name]: currentTarget.value })}
  >
    {choices.map((choice) => (
      <option key={choice} value={choice}>
        {label(choice)}
      </option>
    ))}
  </select>
)

const Nothing = () => (
  <Empty
    title="Nothing was used in this time"
    action={
      may('run') && (
        <a class="button main" href={hrefOf('/chat', { try: 'permission' })}>
          Start a chat
        </a>
      )
    }
  >
    Runs count a few seconds after their end: tokens, cost, failures and how long they took.
  </Empty>
)

const COLUMNS = [
  'bucket',
  'key',
  'runs',
  'failed',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'cost_usd',
  'p50_ms',
  'p95_ms',
] as const

/** Saves the rows as a file. */
function downloadCsv(rows: readonly Row[]): void {
  const text = [COLUMNS.join(','), ...rows.map((row) => COLUMNS.map((field) => cell(row[field])).join(','))].join(
    '\r\n',
  )
  saveFile(new Blob([text], { type: 'text/csv' }), 'usage.csv')
}

/** A text that begins like a formula would be one to a spreadsheet. */
function cell(value: string | number | null): string {
  const text = String(value ?? '')
  return typeof value === 'number' ? text : `"${text.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`
}
