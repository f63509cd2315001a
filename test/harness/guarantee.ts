import { type Goal, isMet } from '../../scripts/bench/figure.ts'

/** One number that something was promised about. */
export type Guarantee = { title: string; value: number; unit: string; goal: Goal; detail?: string }

export const isKept = ({ goal, value }: Guarantee): boolean => isMet(goal, value)

/** The promises as aligned columns: title, figure, goal, verdict, then what lies behind the figure. */
export function renderPromises(promises: readonly Guarantee[]): string {
  const lines = promises.map(toCells)
  const widths = [0, 1, 2].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function toCells(promised: Guarantee): string[] {
  const { title, value, unit, goal, detail = '' } = promised
  const [sign, limit] = 'atMost' in goal ? ['<=', goal.atMost] : ['>=', goal.atLeast]
  const shown = (number: number) => `${Number.isInteger(number) ? number : number.toFixed(1)}${unit}`
  return [title, shown(value), `${sign} ${shown(limit)}`, isKept(promised) ? 'kept' : 'BROKEN', detail]
}
