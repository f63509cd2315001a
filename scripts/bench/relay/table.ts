import { type Row, wordOf } from './row.ts'

/** Goal, what it is of, the number beside its bound, the word, and the absolute numbers of this run behind it. */
export function renderTable(rows: readonly Row[]): string {
  const lines = [['GOAL', '', 'HERE', 'GOAL', '', 'BEHIND IT'], ...rows.map(toCells)]
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const render = (line: readonly string[]) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return lines.map((line) => render(line).trimEnd()).join('\n')
}

function toCells(row: Row): string[] {
  const { goal, what, value, bound, unit, detail } = row
  const limit = 'atMost' in bound ? `<= ${bound.atMost}` : `>= ${bound.atLeast}`
  return [goal, what, value === undefined ? '-' : format(value) + unit, limit + unit, wordOf(row), detail]
}

/** Three figures that count; none behind the point that do not. */
export function format(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return value.toFixed(0)
  return value.toPrecision(Math.abs(value) < 1 ? 2 : 3)
}
