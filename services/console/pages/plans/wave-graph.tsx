import { showControls } from '../../../../shared/reading/hidden.ts'
import { hrefOf } from '../../base/router.ts'
import type { Plan } from './plan.ts'

const BOX = { width: 188, height: 46 } as const
const GAP = { x: 56, y: 16 } as const
const EDGE = 12
/** A graph that is wider than its card is drawn smaller while it stays readable; beyond that, the card scrolls. */
const LEAST_SCALE = 0.8

type GraphProps = { plan: Plan; chosen: string | null }

/** The steps from left to right, wave by wave. Each step is a link that chooses it. */
export function WaveGraph({ plan, chosen }: GraphProps) {
  const placed = placeSteps(plan)
  const columns = [...Map.groupBy(placed, ({ wave }) => wave).values()]
  const tallest = Math.max(...columns.map((column) => column.length))
  const at = new Map(placed.map((step) => [step.id, pointOf(step, placed, tallest)]))
  const width = Math.max(...placed.map(({ wave }) => wave)) * (BOX.width + GAP.x) - GAP.x + 2 * EDGE
  const height = tallest * (BOX.height + GAP.y) - GAP.y + 2 * EDGE
  return (
    <svg
      class="waves"
      style={{ maxWidth: width, minWidth: width * LEAST_SCALE }}
      viewBox={`0 0 ${width} ${height}`}
      role="group"
      aria-label="Steps by wave"
    >
      {plan.steps.flatMap(({ id, depends_on = [] }) =>
        depends_on.map((on) => <Edge key={`${on} ${id}`} from={at.get(on)} to={at.get(id)} />),
      )}
      {plan.steps.map((step) => (
        <Node key={step.id} plan={plan} step={step} at={at.get(step.id)} isChosen={step.id === chosen} />
      ))}
    </svg>
  )
}

type Point = { x: number; y: number }

function pointOf({ wave, row }: Placed, placed: readonly Placed[], tallest: number): Point {
  const column = placed.filter((each) => each.wave === wave).length
  const offset = ((tallest - column) * (BOX.height + GAP.y)) / 2
  return { x: EDGE + (wave - 1) * (BOX.width + GAP.x), y: EDGE + offset + row * (BOX.height + GAP.y) }
}

function Edge({ from, to }: { from: Point | undefined; to: Point | undefined }) {
  if (!from || !to) return null
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2]
  const bend = Math.max(24, (x2 - x1) / 2)
  return <path class="edge" d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} />
}

const MARKS: Readonly<Record<string, string>> = {
  pending: '○',
  running: '◐',
  done: '✓',
  failed: '✕',
  skipped: '–',
}

type NodeProps = { plan: Plan; step: Plan['steps'][number]; at: Point | undefined; isChosen: boolean }

function Node({ plan, step: { id, title }, at, isChosen }: NodeProps) {
  if (!at) return null
  const name = showControls(title || id)
  const state = plan.step_statuses[id] ?? 'pending'
  return (
    <a href={hrefOf(`/plans/${plan.id}`, { step: id })} aria-current={isChosen ? 'true' : undefined}>
      <g class={`node step-${state}`} transform={`translate(${at.x} ${at.y})`}>
        <title>{name === id ? id : `${name} (${id})`}</title>
        <rect class="box" width={BOX.width} height={BOX.height} rx="8" />
        <foreignObject x="12" y="5" width={BOX.width - 24} height="20">
          <span class="name cut">{name}</span>
        </foreignObject>
        <text class="state" x="12" y="36">
          {MARKS[state]} {state}
        </text>
      </g>
    </a>
  )
}

type Placed = { id: string; wave: number; row: number }

/** How often the waves are reordered to bring steps nearer to their dependencies. */
const SWEEPS = 4

/** Places each step in the column of its wave, in rows with few crossings. */
function placeSteps({ steps, step_runs }: Pick<Plan, 'steps' | 'step_runs'>): readonly Placed[] {
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
