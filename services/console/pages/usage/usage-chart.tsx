import { caller } from '../../api/caller.ts'
import { money } from '../../base/format.ts'
import { type Bar, type Bucket, barsOf, nameOf, stepsOf } from './bars.ts'
import { MEASURES, type Measure, type Row, type Sum } from './sums.ts'

/** Keys with a colour of their own; the others are one. */
const MOST_KEYS = 5
/** A budget above the bars by more than this would make them too small to be read. */
const BUDGET_IN_SIGHT = 3
const MOST_LABELS = 7
/** Above the highest bar there is room. */
const HEADROOM = 1.1

type ChartProps = {
  rows: readonly Row[]
  sums: readonly Sum[]
  measure: Measure
  bucket: Bucket
  /** The time that is shown, in milliseconds. */
  span: { from: number; to: number }
}

/** The use of each day or hour as bars, divided by the largest keys. The table below says the same in numbers. */
export function UsageChart({ rows, sums, measure, bucket, span }: ChartProps) {
  const keys = sums.slice(0, MOST_KEYS).map(({ key }) => key)
  const names = sums.length > MOST_KEYS ? [...keys, 'the others'] : keys
  const bars = barsOf(rows, { keys, measure, bucket, span })
  const highest = Math.max(0, ...bars.map(({ total }) => total))
  const budget = bucket === 'day' && measure === 'cost' ? budgetNear(highest) : undefined
  const top = Math.max(highest, budget ?? 0) * HEADROOM || 1
  const { label, show } = MEASURES[measure]
  return (
    <figure class="usage-chart">
      <p class="small soft">
        {label} per {bucket}
      </p>
      <div class="chart" role="img" aria-label={`${label} by ${bucket}: the table below has the numbers`}>
        {stepsOf(top, measure !== 'cost').map((step) => (
          <span key={step} class="grid-line small soft" style={{ bottom: percent(step, top) }}>
            {show(step)}
          </span>
        ))}
        {budget !== undefined && <span class="budget" style={{ bottom: percent(budget, top) }} />}
        <div class="bars">
          {bars.map((bar, i) => (
            <BarColumn
              key={bar.time}
              {...{ bar, top, bucket, show }}
              isNamed={(bars.length - 1 - i) % Math.ceil(bars.length / MOST_LABELS) === 0}
            />
          ))}
        </div>
      </div>
      <Legend names={names} budget={budget} />
    </figure>
  )
}

const Legend = ({ names, budget }: { names: readonly string[]; budget: number | undefined }) => (
  <figcaption class="row small legend">
    {names.map((name, i) => (
      <span key={name} style={{ '--key': `var(--key-${i})` }}>
        {name}
      </span>
    ))}
    {budget !== undefined && <span class="budget-line">budget of a day: {money(budget)}</span>}
  </figcaption>
)

type ColumnProps = { bar: Bar; top: number; bucket: Bucket; isNamed: boolean; show(value: number): string }

const BarColumn = ({ bar: { time, total, parts }, top, bucket, isNamed, show }: ColumnProps) => (
  <div class="bar" title={`${nameOf(time, bucket)}: ${show(total)}`}>
    {parts.map((value, i) => (
      <i key={i} style={{ height: percent(value, top), background: `var(--key-${i})` }} />
    ))}
    {isNamed && <span class="small soft">{nameOf(time, bucket)}</span>}
  </div>
)

const percent = (value: number, top: number) => `${(100 * value) / top}%`

/** The budget of a day, where it can be shown beside the bars. */
function budgetNear(highest: number): number | undefined {
  const budget = caller().value?.limits?.['usd_per_day'] ?? undefined
  return budget !== undefined && budget <= highest * BUDGET_IN_SIGHT ? budget : undefined
}
