import type { Schema } from '../../../../shared/client/api.ts'

type Plan = Pick<Schema<'Plan'>, 'steps' | 'step_runs'>

export type Placed = { id: string; wave: number; row: number }

/** Sweeps over the waves that bring steps nearer to those that they depend on. */
const SWEEPS = 4

/** Places each step in the column of its wave, in rows with few crossings. */
export function placeSteps({ steps, step_runs }: Plan): readonly Placed[] {
  const waves = [...Map.groupBy(steps, ({ id }) => step_runs[id]?.wave ?? 1)].toSorted(([a], [b]) => a - b)
  const columns = waves.map(([, members]) => members.map(({ id }) => id))
  const above = new Map(steps.map(({ id, depends_on = [] }) => [id, depends_on]))
  const below = new Map<string, string[]>()
  for (const { id, depends_on = [] } of steps)
    for (const on of depends_on) below.set(on, [...(below.get(on) ?? []), id])
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const [order, neighbours] = sweep % 2 === 0 ? [columns.keys(), above] : [[...columns.keys()].toReversed(), below]
    for (const i of order) columns[i] = sortByNeighbours(columns[i] ?? [], neighbours, rowsOf(columns))
  }
  return columns.flatMap((column, i) => column.map((id, row) => ({ id, wave: waves[i]?.[0] ?? 1, row })))
}

const rowsOf = (columns: readonly (readonly string[])[]) =>
  new Map(columns.flatMap((column) => column.map((id, row) => [id, row - (column.length - 1) / 2] as const)))

/** By the mean of the neighbours' rows; a step without neighbours keeps its own. */
function sortByNeighbours(
  column: readonly string[],
  neighbours: ReadonlyMap<string, readonly string[]>,
  rows: ReadonlyMap<string, number>,
): string[] {
  const mean = (id: string) => {
    const found = (neighbours.get(id) ?? []).flatMap((each) => rows.get(each) ?? [])
    return found.length === 0 ? (rows.get(id) ?? 0) : found.reduce((sum, row) => sum + row, 0) / found.length
  }
  return column.toSorted((one, other) => mean(one) - mean(other))
}
