import { cut, padEnd, padStart, widthOf } from './width.ts'

/** `isNumber` aligns to the right. The first column with `canShrink` gives way when the table is too wide, then the next. */
export type Column<Row> = {
  title: string
  value: (row: Row) => string
  isNumber?: boolean
  canShrink?: boolean
}

const GAP = '  '
const LEAST = 8

/** The lines of a table that is at most `most` columns wide; without that number it is as wide as it needs to be. */
export function tableLines<Row>(rows: readonly Row[], columns: readonly Column<Row>[], most?: number): string[] {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ value }) => value(row)))]
  const widths = fit(
    columns.map((column, i) => ({ ...column, width: Math.max(...cells.map((row) => widthOf(row[i] ?? ''))) })),
    most,
  )
  return cells.map((row) =>
    row
      .map((cell, i) => aligned(cut(cell, widths[i] ?? 0), widths[i] ?? 0, columns[i]?.isNumber))
      .join(GAP)
      .trimEnd(),
  )
}

const aligned = (text: string, width: number, isNumber: boolean | undefined): string =>
  isNumber ? padStart(text, width) : padEnd(text, width)

function fit(columns: readonly { width: number; canShrink?: boolean }[], most: number | undefined): number[] {
  const widths = columns.map(({ width }) => width)
  if (most === undefined) return widths
  let excess = widths.reduce((sum, width) => sum + width, GAP.length * (columns.length - 1)) - most
  for (const [i, { width, canShrink }] of columns.entries()) {
    if (excess <= 0) break
    if (!canShrink) continue
    const less = Math.min(excess, Math.max(0, width - LEAST))
    widths[i] = width - less
    excess -= less
  }
  return widths
}
