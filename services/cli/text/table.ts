import { plainLine } from './plain.ts'
import { cut, padEnd, padStart, shortId, widthOf } from './width.ts'

/**
 * `isNumber` aligns to the right. If a table is too wide for the terminal, ids that `resolveId` accepts (`isId`) are shortened first.
 * Then the `isMinor` columns are left out from the right, and then the columns with `canShrink` are narrowed, beginning with the first.
 */
export type Column<Row> = {
  title: string
  value: (row: Row) => string
  isNumber?: boolean
  isId?: boolean
  isMinor?: boolean
  canShrink?: boolean
}

type Measured = Omit<Column<never>, 'value'> & { cells: string[]; width: number }

const GAP = '  '
/** The characters that a narrowed column keeps: `COMFORTABLE` while other columns can be left out, and `LEAST` after that. */
const COMFORTABLE = 16
const LEAST = 8

/**
 * The lines of a table that is at most `most` columns wide; without `most` it is as wide as needed. Invisible
 * characters of the texts are removed.
 */
export function tableLines<Row>(rows: readonly Row[], columns: readonly Column<Row>[], most?: number): string[] {
  const whole = columns.map(({ value, ...rest }) =>
    measured(rest, [rest.title, ...rows.map((row) => plainLine(value(row)))]),
  )
  const shown = most === undefined ? whole : fit(whole, most)
  return ['', ...rows].map((_, i) => {
    const line = shown
      .map(({ cells, width, isNumber }) => aligned(cut(cells[i] ?? '', width), width, isNumber))
      .join(GAP)
    return cut(line.trimEnd(), most ?? Number.POSITIVE_INFINITY)
  })
}

const measured = (column: Omit<Measured, 'cells' | 'width'>, cells: string[]): Measured => ({
  ...column,
  cells,
  width: Math.max(...cells.map(widthOf)),
})

const aligned = (text: string, width: number, isNumber: boolean | undefined): string =>
  isNumber ? padStart(text, width) : padEnd(text, width)

function fit(whole: readonly Measured[], most: number): Measured[] {
  if (excessOf(whole, most) <= 0) return [...whole]
  let kept = whole.map((column) =>
    column.isId
      ? measured(
          column,
          column.cells.map((cell) => shortId(cell)),
        )
      : column,
  )
  for (;;) {
    const minor = kept.findLastIndex(({ isMinor }) => isMinor)
    if (minor < 0 || excessOf(shrunk(kept, { most, least: COMFORTABLE }), most) <= 0) break
    kept = kept.toSpliced(minor, 1)
  }
  const fitting = shrunk(kept, { most, least: LEAST })
  return shrunk(
    fitting.map((column) => ({ ...column, canShrink: true })),
    { most, least: LEAST },
  )
}

function shrunk(columns: readonly Measured[], { most, least }: { most: number; least: number }): Measured[] {
  let excess = excessOf(columns, most)
  return columns.map((column) => {
    const less = column.canShrink ? Math.max(0, Math.min(excess, column.width - least)) : 0
    excess -= less
    return { ...column, width: column.width - less }
  })
}

const excessOf = (columns: readonly Measured[], most: number): number =>
  columns.reduce((sum, { width }) => sum + width, GAP.length * (columns.length - 1)) - most
