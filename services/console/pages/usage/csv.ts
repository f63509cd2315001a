import { saveFile } from '../../base/save-file.ts'
import type { Row } from './sums.ts'

const FIELDS = [
  'bucket',
  'key',
  'runs',
  'failed',
  'input_tokens',
  'cache_read_tokens',
  'output_tokens',
  'cost_usd',
  'p50_ms',
  'p95_ms',
] as const

/** Saves the rows as a file. */
export function downloadCsv(rows: readonly Row[]): void {
  const text = [FIELDS.join(','), ...rows.map((row) => FIELDS.map((field) => cell(row[field])).join(','))].join('\r\n')
  saveFile(new Blob([text], { type: 'text/csv' }), 'usage.csv')
}

/** A text that begins like a formula would be one to a spreadsheet. */
function cell(value: string | number | null): string {
  const text = String(value ?? '')
  return typeof value === 'number' ? text : `"${text.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`
}
