import type { ComponentChildren } from 'preact'
import './figures.css'
import './meter.css'

/** A few numbers that matter most on a page. */
export const Figures = ({ children }: { children: ComponentChildren }) => <dl class="headline">{children}</dl>

type FigureProps = { name: string; used: number; of?: number | null | undefined; show(value: number): string }

/** A number, and how much of its budget it is where it has one. */
export const Figure = ({ name, used, of, show }: FigureProps) => (
  <div>
    <dt class="small soft">{name}</dt>
    <dd class="number">
      {show(used)}
      {typeof of === 'number' && <span class="soft small"> of {show(of)}</span>}
      {typeof of === 'number' && (
        <progress class="meter" max={1} value={Math.min(1, used / of)} aria-label={`${name}: part of the budget`} />
      )}
    </dd>
  </div>
)
