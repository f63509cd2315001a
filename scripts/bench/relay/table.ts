import { outcomeOf, type Row } from './row.ts'

/** Renders aligned columns: goal, title, value, bound, outcome, absolute numbers of this run. */
export function renderTable(rows: readonly Row[]): string {
  const lines = [['GOAL', '', 'VALUE', 'BOUND', '', 'DETAIL'], ...rows.map(toCells)]
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const render = (line: readonly string[]) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return lines.map((line) => render(line).trimEnd()).join('\n')
}

function toCells(row: Row): string[] {
  const { goal, what, value, bound, unit, detail } = row
  const limit = 'atMost' in bound ? `<= ${bound.atMost}` : `>= ${bound.atLeast}`
  return [goal, what, value === undefined ? '-' : format(value) + unit, limit + unit, outcomeOf(row), detail]
}

/** Formats with three significant digits, two below 1, and none after the point for large or whole numbers. */
export function format(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return value.toFixed(0)
  return value.toPrecision(Math.abs(value) < 1 ? 2 : 3)
}
