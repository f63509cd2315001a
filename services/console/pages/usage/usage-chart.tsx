import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { caller } from '../../api/caller.ts'
import { money, short } from '../../base/format.ts'
import { axesOf } from './axes.ts'
import { type Row, type Sum, weightOf } from './sums.ts'

const HEIGHT = 240
/** Keys with a colour of their own; the others are one. */
const MOST_KEYS = 5
/** A budget above the bars by more than this would make them too small to be read. */
const BUDGET_IN_SIGHT = 3

type ChartProps = {
  rows: readonly Row[]
  sums: readonly Sum[]
  bucket: 'hour' | 'day'
  /** The time that is shown, in milliseconds. */
  span: { from: number; to: number }
}

/** The use of each day or hour as bars, divided by the largest keys. The table below says the same in numbers. */
export function UsageChart({ rows, sums, bucket, span }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const keys = sums.slice(0, MOST_KEYS).map(({ key }) => key)
  const names = sums.length > MOST_KEYS ? [...keys, 'the others'] : keys
  const data = stackedOf(rows, { keys, count: names.length, bucket, span })
  const highest = Math.max(0, ...(data[1] ?? []).map((value) => value ?? 0))
  const budget = bucket === 'day' && hasCostIn(rows) ? budgetNear(highest) : undefined
  useEffect(() => {
    const element = place.current
    if (!element) return
    const chart = { count: names.length, bucket, highest, budget, show: hasCostIn(rows) ? money : short }
    const plot = new uPlot(optionsOf(element, data, chart), data, element)
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [rows])
  return (
    <figure class="usage-chart">
      <p class="small soft">
        {hasCostIn(rows) ? 'Cost' : 'Tokens'} per {bucket}
      </p>
      <div ref={place} class="chart" role="img" aria-label={`Use by ${bucket}: the table below has the numbers`} />
      <figcaption class="row small legend">
        {names.map((name, i) => (
          <span key={name} style={{ '--key': `var(--key-${i})` }}>
            {name}
          </span>
        ))}
        {budget !== undefined && <span class="budget-line">budget of a day: {money(budget)}</span>}
      </figcaption>
    </figure>
  )
}

/** The budget of a day, where it can be shown beside the bars. */
function budgetNear(highest: number): number | undefined {
  const budget = caller().value?.limits?.['usd_per_day'] ?? undefined
  return budget !== undefined && budget <= highest * BUDGET_IN_SIGHT ? budget : undefined
}

const hasCostIn = (rows: readonly Row[]) => rows.some(({ cost_usd }) => cost_usd > 0)

type Chart = Pick<ChartProps, 'bucket'> & {
  /** Of the keys that have a colour. */
  count: number
  highest: number
  budget: number | undefined
  show(value: number): string
}

function optionsOf(
  element: HTMLElement,
  data: uPlot.AlignedData,
  { count, bucket, highest, budget, show }: Chart,
): uPlot.Options {
  const style = getComputedStyle(element)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const bars = uPlot.paths.bars?.({ size: [0.6, 72] })
  // The largest bar is drawn first, and the smaller ones over it.
  const series = Array.from({ length: count }, (_, i) => ({
    fill: colour(`--key-${count - 1 - i}`),
    ...(bars && { paths: bars }),
    points: { show: false },
  }))
  const { scales, axes } = axesOf({ times: data[0], bucket, top: Math.max(highest, budget ?? 0), show, colour })
  const draw = budget === undefined ? [] : [(plot: uPlot) => drawLine(plot, budget, colour('--ink-soft'))]
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    ...{ scales, axes, hooks: { draw } },
    series: [{}, ...series],
  }
}

function drawLine({ ctx, bbox, valToPos }: uPlot, value: number, colour: string): void {
  const y = valToPos(value, 'y', true)
  ctx.save()
  ctx.strokeStyle = colour
  ctx.lineWidth = 1.5 * devicePixelRatio
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio])
  ctx.beginPath()
  ctx.moveTo(bbox.left, y)
  ctx.lineTo(bbox.left + bbox.width, y)
  ctx.stroke()
  ctx.restore()
}

const SECONDS = { hour: 3_600, day: 86_400 } as const

type Stacking = Pick<ChartProps, 'bucket' | 'span'> & { keys: readonly string[]; count: number }

/** Sums up the keys of each bucket, from all of them down to the first one alone. */
function stackedOf(rows: readonly Row[], { keys, count, bucket, span }: Stacking): uPlot.AlignedData {
  const step = SECONDS[bucket]
  const [first, last] = [span.from, span.to].map((ms) => Math.floor(ms / 1000 / step)) as [number, number]
  const times = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step)
  const heights = Array.from({ length: count }, () => times.map(() => 0))
  const hasCost = hasCostIn(rows)
  for (const row of rows) {
    const at = Math.floor(Date.parse(row.bucket) / 1000 / step) - first
    const known = keys.indexOf(row.key ?? '(none)')
    for (const height of heights.slice(known < 0 ? count - 1 : known))
      if (height[at] !== undefined) height[at] += weightOf(row, hasCost)
  }
  return [times, ...heights.toReversed()]
}
