import type { ComponentChildren } from 'preact'
import './figures.css'
import './meter.css'

/** A few numbers that matter most on a page. */
export const Figures = ({ children }: { children: ComponentChildren }) => <dl class="headline">{children}</dl>

type FigureProps = {
  name: string
  used: number
  of?: number | null | undefined
  /** The usage in each of several equal time spans. */
  trend?: readonly number[]
  show(value: number): string
}

/** A number, and its share of the budget if it has one. */
export const Figure = ({ name, used, of, trend, show }: FigureProps) => (
  <div>
    <dt class="small soft">{name}</dt>
    <dd class="number">
      {show(used)}
      {typeof of === 'number' && <span class="soft small"> of {show(of)}</span>}
      {trend && used > 0 && <Sparkline values={trend} />}
      {typeof of === 'number' && (
        <progress class="meter" max={1} value={Math.min(1, used / of)} aria-label={`${name}: part of the budget`} />
      )}
    </dd>
  </div>
)

const HEIGHT = 24

/** A bar for each value. The largest bar has the whole height, and every value above 0 is visible. */
function Sparkline({ values }: { values: readonly number[] }) {
  const most = Math.max(...values)
  return (
    <svg class="sparkline" viewBox={`0 0 ${values.length * 4} ${HEIGHT}`} aria-hidden="true">
      {values.map((value, i) => {
        const height = value > 0 ? Math.max(2, (value / most) * HEIGHT) : 1
        return <rect key={i} class={value > 0 ? '' : 'none'} x={i * 4} y={HEIGHT - height} width={3} height={height} />
      })}
    </svg>
  )
}
