import type { Schema } from '../../../shared/client/api.ts'
import './plan-progress.css'

type Look = 'done' | 'failed' | 'skipped' | 'running' | 'pending'

/** The number of entries in each state, with the look and the name of the state. */
export type ProgressParts = readonly (readonly [look: Look, count: number, word: string])[]

const ORDER = ['done', 'failed', 'skipped', 'running', 'pending'] as const

/** The steps of a plan by their states. */
export const PlanProgress = ({ counts }: { counts: Schema<'PlanSummary'>['step_counts'] }) => (
  <Progress parts={ORDER.map((state) => [state, counts[state], state])} />
)

/** Counts as parts of a bar and as numbers. */
export function Progress({ parts }: { parts: ProgressParts }) {
  const shown = parts.filter(([, count]) => count > 0)
  const countOf = (some: ProgressParts) => some.reduce((sum, [, count]) => sum + count, 0)
  const width = 100 / countOf(shown)
  return (
    <span class="plan-progress">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        {shown.map(([look, count, word], i) => (
          <rect
            key={word}
            class={`step-${look}`}
            x={countOf(shown.slice(0, i)) * width}
            width={count * width}
            height="6"
          />
        ))}
      </svg>
      <span class="small soft">{shown.map(([, count, word]) => `${count} ${word}`).join(', ')}</span>
    </span>
  )
}
