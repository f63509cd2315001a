import { useEffect } from 'preact/hooks'
import { clock, runClock } from '../../base/clock.ts'
import { duration } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Line } from '../../parts/foreign.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import type { Plan } from './plan.ts'

/** The steps along the time that they took. */
export function Gantt({ plan, chosen }: { plan: Plan; chosen: string | null }) {
  const isOpen = plan.ended_at === null
  useEffect(isOpen ? runClock : () => undefined, [isOpen])
  if (plan.started_at === null) return <p class="soft">The plan has not begun.</p>
  const from = Date.parse(plan.started_at)
  const to = Math.max(from + 1, plan.ended_at === null ? clock().value : Date.parse(plan.ended_at))
  return (
    <ul class="gantt">
      {plan.steps.map((step) => (
        <Bar key={step.id} plan={plan} step={step} span={{ from, to }} isChosen={step.id === chosen} />
      ))}
    </ul>
  )
}

type BarProps = { plan: Plan; step: Plan['steps'][number]; span: { from: number; to: number }; isChosen: boolean }

function Bar({ plan, step: { id, title }, span, isChosen }: BarProps) {
  const run = plan.step_runs[id]
  const state = plan.step_statuses[id] ?? 'pending'
  const startedAt = run?.started_at ? Math.max(span.from, Date.parse(run.started_at)) : undefined
  const endedAt = run?.ended_at ? Date.parse(run.ended_at) : span.to
  const part = (at: number) => ((at - span.from) / (span.to - span.from)) * 1000
  return (
    <li>
      <a href={hrefOf(`/plans/${plan.id}`, { view: 'time', step: id })} aria-current={isChosen ? 'true' : undefined}>
        <span class="cut">
          <Line text={title || id} />
        </span>
        <svg viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">
          {startedAt !== undefined && (
            <rect
              class={`step-${state}`}
              x={part(startedAt)}
              width={Math.max(4, part(endedAt) - part(startedAt))}
              height="14"
            />
          )}
        </svg>
        <span class="small soft number">
          {startedAt === undefined ? '' : duration(Math.max(0, endedAt - startedAt))}
        </span>
        <StateBadge state={state} />
      </a>
    </li>
  )
}
