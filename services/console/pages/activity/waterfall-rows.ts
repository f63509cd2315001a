import type { Schema } from '../../../../shared/client/api.ts'

type Phase = Schema<'RunPhase'>

/** A line of the waterfall. `to` is `undefined` while the phase continues. `depth` counts the rows that contain it. */
export type Row = {
  kind: 'queued' | 'turn' | Phase['kind']
  name: string
  depth: number
  from: number
  to: number | undefined
  hasFailed: boolean
  /** Set for the call of a model. */
  call?: Call
}

/** A call of a model: the agent of the run has no id. */
export type Call = { name: string; turn: number; agent: string | undefined }

/** A shorter wait for a place cannot be seen. */
const SHOWN_MS = 50

/** The lines of a run's phases: each turn with its phases, and below each sub-agent the phases of the sub-agent. */
export function rowsOf({ phases = [], queued_ms = 0 }: Pick<Schema<'Run'>, 'phases' | 'queued_ms'>): Row[] {
  const rows: Row[] = []
  if (queued_ms >= SHOWN_MS) rows.push(row({ kind: 'queued', name: 'Queued', from: 0, to: queued_ms }))
  let turn = -1
  for (const phase of phases) {
    if (phase.subagent_id !== undefined && phase.kind !== 'subagent') continue
    if (phase.subagent_id === undefined && phase.turn !== turn) rows.push(turnRow(phases, (turn = phase.turn)))
    rows.push(rowOf(phase, 1))
    if (phase.kind === 'subagent')
      for (const own of phases) if (own.subagent_id === phase.subagent_id && own !== phase) rows.push(rowOf(own, 2))
  }
  return rows
}

type Spanned = Pick<Row, 'kind' | 'name' | 'from' | 'to'>

const row = (spanned: Spanned, depth = 0, hasFailed = false): Row => ({ ...spanned, depth, hasFailed })

function rowOf(phase: Phase, depth: number): Row {
  const { kind, name, started_ms: from, ended_ms, turn, subagent_id: agent } = phase
  const text = kind === 'permission' ? `Permission for ${name}` : kind === 'retry' ? `Retry after ${name}` : name
  const own = row({ kind, name: text, from, to: ended_ms ?? undefined }, depth, phase.failed)
  return kind === 'model' ? { ...own, call: { name, turn, agent } } : own
}

/** The row of a turn: it spans all phases of the turn. */
function turnRow(phases: readonly Phase[], turn: number): Row {
  const own = phases.filter((phase) => phase.subagent_id === undefined && phase.turn === turn)
  const isOpen = own.some(({ ended_ms }) => ended_ms === null)
  return row({
    kind: 'turn',
    name: `Turn ${turn}`,
    from: Math.min(...own.map(({ started_ms }) => started_ms)),
    to: isOpen ? undefined : Math.max(...own.map(({ ended_ms }) => ended_ms ?? 0)),
  })
}

/** At most five round times along an axis of this length, without 0. */
export function ticksOf(totalMs: number): number[] {
  const least = Math.max(1, totalMs / 5)
  const power = 10 ** Math.floor(Math.log10(least))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least) ?? totalMs
  return Array.from({ length: Math.floor(totalMs / step) }, (_, i) => (i + 1) * step)
}
