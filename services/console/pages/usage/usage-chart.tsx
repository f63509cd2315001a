import { caller } from '../../api/caller.ts'
import { zone } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { type Bar, barsOf, nameOf, stepsOf } from './bars.ts'
import type { Usage } from './read-usage.ts'
import { runsOf } from './runs-of.ts'
import { type Bucket, LENGTH_MS } from './spans.ts'
import { type Measure, measure, type Sum, shown } from './sums.ts'

/** How many keys have a colour of their own; all other keys share one. */
const MOST_KEYS = 5
/** If the budget exceeds the bars by more than this factor, it is not shown: it would make the bars too small. */
const BUDGET_IN_SIGHT = 3
const MOST_LABELS = 7
/** Above the highest bar there is room. */
const HEADROOM = 1.1

type ChartProps = {
  by: string
  usage: Usage
  sums: readonly Sum[]
  name: Measure
  bucket: Bucket
  /** The shown time, in milliseconds. */
  span: { from: number; to: number }
}

/** The usage of each day or hour as bars that link to the runs, divided by the largest keys. The table below shows the same as numbers. */
export function UsageChart({ by, usage, sums, name, bucket, span }: ChartProps) {
  const { label, isSum, show, budget: limit } = measure(name)
  const parts = isSum ? sums.slice(0, MOST_KEYS) : []
  const { totals } = usage
  const bars = barsOf(usage.rows, { totals, keys: parts.map(({ key }) => key), measure: name, bucket, span })
  const highest = Math.max(0, ...bars.map(({ total = 0 }) => total))
  const budget = bucket === 'day' && limit ? budgetNear(highest, limit) : undefined
  const top = Math.max(highest, budget ?? 0) * HEADROOM || 1
  return (
    <figure class="usage-chart">
      <p class="small soft">
        {label} per {bucket}, {bucket === 'day' ? 'in days of UTC' : `in the zone ${zone()}`}
      </p>
      <div class="chart">
        {stepsOf(top, name !== 'cost' && name !== 'cache').map((step) => (
          <span key={step} class="grid-line small soft" style={{ bottom: percent(step, top) }}>
            {show(step)}
          </span>
        ))}
        {budget !== undefined && <span class="budget" style={{ bottom: percent(budget, top) }} />}
        <ol class="bars" aria-label={`${label} by ${bucket}`}>
          {bars.map((bar, i) => (
            <BarColumn
              key={bar.time}
              {...{ by, bar, top, bucket, name, parts }}
              isNamed={(bars.length - 1 - i) % Math.ceil(bars.length / MOST_LABELS) === 0}
            />
          ))}
        </ol>
      </div>
      <Legend
        names={[...parts.map((part) => part.name), ...(hasRest(bars, parts.length) && isSum ? ['the others'] : [])]}
        colours={parts.length}
        budget={budget === undefined ? undefined : show(budget)}
      />
    </figure>
  )
}

const hasRest = (bars: readonly Bar[], at: number) => bars.some(({ parts }) => (parts[at] ?? 0) > 0)

type LegendProps = { names: readonly string[]; colours: number; budget: string | undefined }

const Legend = ({ names, colours, budget }: LegendProps) => (
  <figcaption class="row small legend">
    {names.map((name, i) => (
      <span key={i} style={{ '--key': colourOf(i, colours) }}>
        {name}
      </span>
    ))}
    {budget !== undefined && <span class="budget-line">budget of a day: {budget}</span>}
  </figcaption>
)

/** The part without a key of its own is grey beside other keys; without other keys it has the first colour. */
const colourOf = (at: number, colours: number) => `var(--key-${colours > 0 && at >= colours ? MOST_KEYS : at})`

type ColumnProps = {
  by: string
  bar: Bar
  top: number
  bucket: Bucket
  name: Measure
  parts: readonly Sum[]
  isNamed: boolean
}

/** The whole bar is a link for all readers; each part is a further link for readers with a pointer. */
function BarColumn({ by, bar, top, bucket, name, parts, isNamed }: ColumnProps) {
  const { time, total } = bar
  const span = { from: time, to: time + LENGTH_MS[bucket] }
  const day = nameOf(time, bucket)
  const linkOf = (values: Sum['values'], value = total) => {
    const runs = (of: Sum['values']) => runsOf({ by, values: of, measure: name, value, span })
    return hrefOf('/activity', runs(values) ?? runs([]))
  }
  return (
    <li class="bar">
      <a
        class="all"
        href={linkOf([])}
        aria-label={`${day}: ${shown(name, total)}`}
        title={`${day}: ${shown(name, total)}`}
      />
      {bar.parts.map(
        (value, i) =>
          value > 0 && (
            <a
              key={i}
              class="part"
              href={linkOf(parts[i]?.values ?? [], value)}
              tabIndex={-1}
              aria-hidden="true"
              title={`${day}, ${parts[i]?.name ?? 'all'}: ${shown(name, value)}`}
              style={{ height: percent(value, top), background: colourOf(i, parts.length) }}
            />
          ),
      )}
      {isNamed && (
        <span class="small soft" aria-hidden="true">
          {day}
        </span>
      )}
    </li>
  )
}

const percent = (value: number, top: number) => `${(100 * value) / top}%`

/** The budget of a day, if it can be shown beside the bars. */
function budgetNear(highest: number, limit: 'usd_per_day' | 'tokens_per_day'): number | undefined {
  const budget = caller().value?.limits?.[limit] ?? undefined
  return budget !== undefined && budget <= highest * BUDGET_IN_SIGHT ? budget : undefined
}
