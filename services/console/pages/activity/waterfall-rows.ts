import type { Schema } from '../../../../shared/client/api.ts'

type Phase = Schema<'RunPhase'>

/** A line of the waterfall. `to` is `undefined` while it goes on. `depth` counts the rows that contain it. */
export type Row = {
  kind: 'queued' | 'turn' | Phase['kind']
  name: string
  depth: number
  from: number
  to: number | undefined
  hasFailed: boolean
}

/** A shorter wait for a place cannot be seen. */
const SHOWN_MS = 50

/** The lines of a run's phases: each turn with what was done in it, and below each sub-agent what that has done. */
export function rowsOf({ phases = [], queued_ms = 0 }: Pick<Schema<'Run'>, 'phases' | 'queued_ms'>): Row[] {
  const rows: Row[] = []
  if (queued_ms >= SHOWN_MS) rows.push(row({ kind: 'queued', name: 'Queued', from: 0, to: queued_ms }))
  let turn = -1
  for (const phase of phases) {
    if (phase.subagent_id !== undefined && phase.kind !== 'subagent') continue
    if (phase.subagent_id === undefined && phase.turn !== turn) rows.push(turnRow(phases, (turn = phase.turn)))
    rows.push(row(spanOf(phase), 1, phase.failed))
    if (phase.kind === 'subagent')
      for (const own of phases)
        if (own.subagent_id === phase.subagent_id && own !== phase) rows.push(row(spanOf(own), 2, own.failed))
  }
  return rows
}

type Spanned = Pick<Row, 'kind' | 'name' | 'from' | 'to'>

const row = (spanned: Spanned, depth = 0, hasFailed = false): Row => ({ ...spanned, depth, hasFailed })

const spanOf = ({ kind, name, started_ms, ended_ms }: Phase): Spanned => ({
  kind,
  name: kind === 'permission' ? `Permission for ${name}` : name,
  from: started_ms,
  to: ended_ms ?? undefined,
})

/** From the first to the last of what was done in it. */
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

/** Round times along an axis of this length, at most five, without its beginning. */
export function ticksOf(totalMs: number): number[] {
  const least = Math.max(1, totalMs / 5)
  const power = 10 ** Math.floor(Math.log10(least))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least) ?? totalMs
  return Array.from({ length: Math.floor(totalMs / step) }, (_, i) => (i + 1) * step)
}
