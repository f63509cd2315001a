import type { Schema } from '../../../../shared/client/api.ts'
import { duration } from '../../base/format.ts'

/** A shorter phase cannot be seen. */
const SHOWN_MS = 50

type Phase = { name: string; ms: number; look: string }

/** Shows how a run used its time, by its record: waiting for a place, waiting for the model, working. */
export function PhaseBar({ run }: { run: Schema<'Run'> }) {
  const phases = phasesOf(run)
  if (phases.length === 0) return null
  const total = phases.reduce((sum, { ms }) => sum + ms, 0)
  return (
    <figure class="phases">
      <svg viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden="true">
        {phases.map(({ name, ms, look }, i) => (
          <rect
            key={name}
            class={look}
            x={(startOf(phases, i) / total) * 1000}
            width={Math.max(2, (ms / total) * 1000)}
            height="12"
          />
        ))}
      </svg>
      <figcaption class="row small">
        {phases.map(({ name, ms, look }) => (
          <span key={name} class={`phase ${look}`}>
            {name} <b class="number">{duration(ms)}</b>
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

const startOf = (phases: readonly Phase[], at: number) => phases.slice(0, at).reduce((sum, { ms }) => sum + ms, 0)

function phasesOf({ started_at, ended_at, queued_ms = 0, first_token_ms = queued_ms }: Schema<'Run'>): Phase[] {
  if (ended_at === null) return []
  const total = Math.max(1, Date.parse(ended_at) - Date.parse(started_at))
  const firstToken = Math.min(total, Math.max(first_token_ms, queued_ms))
  return [
    { name: 'Queued', ms: queued_ms, look: 'queued' },
    { name: 'To the first token', ms: firstToken - queued_ms, look: 'first' },
    { name: 'At work', ms: total - firstToken, look: 'work' },
  ].filter(({ ms }) => ms >= SHOWN_MS)
}
