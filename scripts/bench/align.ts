/** Renders rows in columns: the first one on the left, the others on the right. */
export function align(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(...rows.map(({ length }) => length))
  const widths = Array.from({ length: columns }, (_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const render = (row: readonly string[]) =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  ')
  return rows.map((row) => render(row).trimEnd()).join('\n')
}
