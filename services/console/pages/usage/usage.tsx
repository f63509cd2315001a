import './usage.css'
import { may } from '../../api/caller.ts'
import { saveFile } from '../../api/download.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'
import { hrefOf, type PageProps } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { Empty, Notice } from '../../parts/notice.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Choices } from './choices.tsx'
import { csvOf } from './csv.ts'
import { Headline } from './headline.tsx'
import { isoOf, readUsage, type Usage as Used } from './read-usage.ts'
import { SPANS, type Span, spanOf, startsOf } from './spans.ts'
import { addUp, type Measure, measureOf, sumsOf } from './sums.ts'
import { UsageChart } from './usage-chart.tsx'
import { UsageTable } from './usage-table.tsx'

/** The sums are stored this long after the end of a run. */
const COUNTED_MS = 3_000

/** The usage of the tenant's runs, by day or hour. */
export function Usage({ query }: PageProps) {
  const by = query.get('by') ?? 'model'
  const chosen = spanOf(query.get('span') ?? '')
  const span = SPANS[chosen]
  const { from } = startsOf(span, serverNow())
  const request = { by, bucket: span.bucket, from: isoOf(from) }
  const usage = useResource(
    JSON.stringify(request),
    () => readUsage(by, span, serverNow()),
    ({ event }) => event === 'run.ended' && COUNTED_MS,
  )
  const found = usage.state.value.data
  const measure = measureOf(query.get('measure'), found?.totals ?? [])
  const rows = found?.rows ?? []
  return (
    <div class="page">
      <PageHead title="Usage" purpose="What the runs of your tenant used and cost, by day or hour.">
        <div class="row">
          <Save as="CSV" type="text/csv" text={rows.length > 0 && (() => csvOf(by, rows))} />
          <Save
            as="JSON"
            type="application/json"
            text={rows.length > 0 && (() => JSON.stringify({ by, bucket: span.bucket, rows }, null, 2))}
          />
          <CopyAs method="GET" path="/usage" query={request} />
        </div>
      </PageHead>
      <div class="row">
        <Choices by={by} span={chosen} />
      </div>
      <Loaded from={usage}>
        {(data) =>
          data.totals.length === 0 ? <Nothing /> : <Found usage={data} name={measure} {...{ by, span, from }} />
        }
      </Loaded>
    </div>
  )
}

type SaveProps = { as: string; type: string; text: false | (() => string) }

/** The button that saves the shown data, if there is any. */
const Save = ({ as, type, text }: SaveProps) => (
  <button
    type="button"
    class="button"
    aria-label={`Save as ${as}`}
    title={`Save as ${as}`}
    disabled={!text}
    onClick={() => text && saveFile(new Blob([text()], { type }), `usage.${as.toLowerCase()}`)}
  >
    {as}
  </button>
)

type FoundProps = { usage: Used; name: Measure; by: string; span: Span; from: number }

function Found({ usage, name, by, span, from }: FoundProps) {
  const sums = sumsOf(usage.rows, name, addUp(usage.totals))
  const now = serverNow()
  return (
    <>
      {usage.isCut && (
        <Notice tone="warn">
          There are more rows than the page reads: what is missing in the table is under “the others” in the chart.
          Choose a shorter time or another division.
        </Notice>
      )}
      <div class="usage-columns">
        <section class="card padded stack" aria-label="Chart">
          <Headline {...{ usage, name, span, now }} />
          <UsageChart {...{ by, usage, sums, name }} bucket={span.bucket} span={{ from, to: now }} />
        </section>
        {sums.length > 0 ? <UsageTable {...{ by, sums, from }} measure={name} /> : <NoPairs />}
      </div>
      <p class="small soft">
        A run counts when it has ended. A bar, a part of it and a name lead to their runs, by the time at which these
        began.
      </p>
    </>
  )
}

/** Each run has a value of the other dimensions, or a row without one. */
const NoPairs = () => <p class="card padded soft">No run of this time has metadata of this name.</p>

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
