import type { Schema } from '../../../shared/client/api.ts'
import './plan-progress.css'

type Counts = Schema<'PlanSummary'>['step_counts']

const ORDER = ['done', 'failed', 'skipped', 'running', 'pending'] as const

/** The steps of a plan by their states, as parts of a bar and as numbers. */
export function PlanProgress({ counts }: { counts: Counts }) {
  const total = ORDER.reduce((sum, state) => sum + counts[state], 0)
  const shown = ORDER.filter((state) => counts[state] > 0)
  return (
    <span class="plan-progress">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        {shown.map((state) => (
          <rect
            key={state}
            class={`step-${state}`}
            x={startOf(counts, state, total)}
            width={(counts[state] / total) * 100}
            height="6"
          />
        ))}
      </svg>
      <span class="small soft">{shown.map((state) => `${counts[state]} ${state}`).join(', ')}</span>
    </span>
  )
}

const startOf = (counts: Counts, state: (typeof ORDER)[number], total: number) =>
  (ORDER.slice(0, ORDER.indexOf(state)).reduce((sum, each) => sum + counts[each], 0) / total) * 100
