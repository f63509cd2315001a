import { type Goal, isMet, type Row } from './figure.ts'

/** Renders aligned columns: title, value, goal, `pass` or `MISS`, absolute numbers. */
export function renderTable(rows: readonly Row[]): string {
  const lines = [['FIGURE', '', 'GOAL'], ...rows.map(toCells)]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function toCells({ figure, outcome }: Row): string[] {
  const { title, goal, unit } = figure
  if ('failure' in outcome) return [title, '-', goalText(goal, unit), 'NOT MEASURED', outcome.failure]
  const { value, detail } = outcome
  return [title, value.toFixed(2) + unit, goalText(goal, unit), isMet(goal, value) ? 'pass' : 'MISS', detail]
}

function goalText(goal: Goal, unit: string): string {
  return 'atMost' in goal ? `<= ${goal.atMost}${unit}` : `>= ${goal.atLeast}${unit}`
}
