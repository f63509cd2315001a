import { type Goal, isMet } from '../../scripts/bench/figure.ts'
import { quantile } from '../../scripts/bench/statistics.ts'

/** A measured number and the limit that was promised for it. `detail` shows the numbers behind it. */
export type Guarantee = { title: string; value: number; unit: string; goal: Goal; detail?: string }

const MAX_DETAIL_CHARS = 300

export const isKept = ({ goal, value }: Guarantee): boolean => isMet(goal, value)

/** `value` of `wanted` things happened, and all of them should. Zero wanted things do not keep a guarantee. */
export function allOf(title: string, value: number, wanted: number): Guarantee {
  return { title, value, unit: '', goal: { atLeast: Math.max(1, wanted) }, detail: `of ${wanted}` }
}

/** `count` things happened that must not happen. */
export function none(title: string, count: number, detail = ''): Guarantee {
  return { title, value: count, unit: '', goal: { atMost: 0 }, detail }
}

/** As `none`, from the list of what was found; the detail shows the first. */
export function noneOf(title: string, found: readonly string[]): Guarantee {
  return none(title, found.length, (found[0] ?? '').slice(0, MAX_DETAIL_CHARS))
}

/** The longest of `times`, in milliseconds. An empty list breaks the guarantee. */
export function slowest(title: string, times: readonly number[], atMost: number): Guarantee {
  const value = times.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...times)
  return { title, value, unit: ' ms', goal: { atMost }, detail: distributionOf(times) }
}

/** The quantile `part` of `times`, in milliseconds. An empty list breaks the guarantee. */
export function quantileOf(title: string, times: readonly number[], limit: QuantileLimit): Guarantee {
  const value = times.length === 0 ? Number.POSITIVE_INFINITY : quantile(times, limit.part)
  return { title, value, unit: ' ms', goal: { atMost: limit.atMost }, detail: distributionOf(times) }
}

type QuantileLimit = { part: number; atMost: number }

/** Renders aligned columns: title, value, limit, `kept` or `BROKEN`, detail. */
export function renderGuarantees(guarantees: readonly Guarantee[]): string {
  const rows = guarantees.map(toCells)
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const render = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => render(row).trimEnd()).join('\n')
}

function toCells(guarantee: Guarantee): string[] {
  const { title, value, unit, goal, detail = '' } = guarantee
  const [sign, limit] = 'atMost' in goal ? ['<=', goal.atMost] : ['>=', goal.atLeast]
  const format = (number: number) => `${Number.isInteger(number) ? number : number.toFixed(1)}${unit}`
  return [title, format(value), `${sign} ${format(limit)}`, isKept(guarantee) ? 'kept' : 'BROKEN', detail]
}

function distributionOf(times: readonly number[]): string {
  if (times.length === 0) return 'nothing was measured'
  const ms = (part: number) => quantile(times, part).toFixed(0)
  return `p50 ${ms(0.5)}, p90 ${ms(0.9)}, p99 ${ms(0.99)}, max ${ms(1)} of ${times.length}`
}
