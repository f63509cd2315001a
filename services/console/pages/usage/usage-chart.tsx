import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { money, short } from '../../base/format.ts'
import { type Row, type Sum, weightOf } from './sums.ts'

const HEIGHT = 240
/** Keys with a colour of their own; the others are one. */
const MOST_KEYS = 5
const COLOURS = ['--accent', '--good', '--warn', '--bad', '--ink-soft', '--line-strong'] as const

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
  useEffect(() => {
    const element = place.current
    if (!element) return
    const plot = new uPlot(
      optionsOf(names, rows, element.clientWidth),
      stackedOf(rows, { keys, count: names.length, bucket, span }),
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [rows])
  return (
    <figure>
      <div ref={place} class="chart" role="img" aria-label={`Use by ${bucket}: the table below has the numbers`} />
      <figcaption class="row small legend">
        {names.map((name, i) => (
          <span key={name} class={`key-${i}`}>
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

const hasCostIn = (rows: readonly Row[]) => rows.some(({ cost_usd }) => cost_usd > 0)

function optionsOf(names: readonly string[], rows: readonly Row[], width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const show = hasCostIn(rows) ? money : short
  const axis = { stroke: colour('--ink-soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
  const bars = uPlot.paths.bars?.({ size: [0.6, 40] })
  // The largest bar is drawn first, and the smaller ones over it.
  const series = names.map((_, i) => ({
    fill: colour(COLOURS[names.length - 1 - i] ?? '--line-strong'),
    ...(bars && { paths: bars }),
    points: { show: false },
  }))
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true }, y: { range: (_, __, max) => [0, max * 1.1 || 1] } },
    axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(show) }],
    series: [{}, ...series],
  }
}

const SECONDS = { hour: 3_600, day: 86_400 }

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
