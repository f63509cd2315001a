import { FIELDS, labelOf, type Row, valuesOf } from './sums.ts'

const NUMBERS = [...FIELDS, 'p50_ms', 'p95_ms'] as const

/** The rows for a spreadsheet, with a column for each dimension of `by`. */
export function csvOf(by: string, rows: readonly Row[]): string {
  const head = ['bucket', ...by.split(','), ...NUMBERS]
  const lines = rows.map((row) => [row.bucket, ...valuesOf(row).map(textOf), ...NUMBERS.map((field) => row[field])])
  return [head, ...lines].map((line) => line.map(cell).join(',')).join('\r\n')
}

const textOf = (value: ReturnType<typeof valuesOf>[number]) => (value === null ? value : labelOf(value))

/** A spreadsheet would execute a text that begins like a formula, also one with full-width signs, as used in East Asia. */
function cell(value: string | number | null): string {
  if (typeof value === 'number') return String(value)
  return `"${(value ?? '').replace(/^[=+\-@\t\r\n＝＋－＠]/, "'$&").replaceAll('"', '""')}"`
}
