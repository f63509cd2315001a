import type uPlot from 'uplot'

type AxesProps = {
  /** Where the buckets begin, in seconds. */
  times: ArrayLike<number>
  bucket: 'hour' | 'day'
  /** The highest value that is shown. */
  top: number
  show(value: number): string
  colour(name: string): string
}

/** The width that the name of a bucket takes. */
const LABEL_PX = 72

/** Days are those of UTC, as they are counted; hours are shown in the reader's own zone. */
const LABELS = {
  day: new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' }),
  hour: new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' }),
} as const

/** A tick below the middle of each bar, as far as they have room, and half a bar of space at both ends. */
export function axesOf({
  times,
  bucket,
  top,
  show,
  colour,
}: AxesProps): Required<Pick<uPlot.Options, 'scales' | 'axes'>> {
  const all = Array.from(times)
  const half = ((all[1] ?? 0) - (all[0] ?? 0)) / 2 || 1
  const splits = ({ width }: uPlot) => {
    const every = Math.max(1, Math.ceil((all.length * LABEL_PX) / width))
    return all.filter((_, i) => (all.length - 1 - i) % every === 0)
  }
  const axis = { stroke: colour('--ink-soft'), font: `12px ${colour('--font')}`, ticks: { show: false } }
  const grid = { stroke: colour('--line'), width: 1 }
  const nameOf = (seconds: number) => LABELS[bucket].format(seconds * 1_000)
  return {
    scales: {
      x: { time: false, range: () => [(all[0] ?? 0) - half, (all.at(-1) ?? 0) + half] },
      y: { range: () => [0, top * 1.1 || 1] },
    },
    axes: [
      { ...axis, size: 32, grid: { show: false }, splits, values: (_, ticks) => ticks.map(nameOf) },
      { ...axis, grid, size: 64, values: (_, ticks) => ticks.map(show) },
    ],
  }
}
