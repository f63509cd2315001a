import { useEffect, useRef } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { money, short, shortId } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Line } from '../../parts/foreign.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Notice } from '../../parts/notice.tsx'
import { LiveAnswer } from '../../parts/run/live-answer.tsx'
import { useLiveRun } from '../../parts/run/use-live-run.ts'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Took } from '../../parts/time.tsx'
import type { Plan } from './plan.ts'

type StepPanelProps = { plan: Plan; step: Schema<'PlanStep'>; onClose(): void }

/** One step: its prompt, its progress and its answer, over the page. Escape closes it, and the focus goes back to the step. */
export function StepPanel({ plan, step, onClose }: StepPanelProps) {
  const run = plan.step_runs[step.id]
  const error = plan.step_errors?.[step.id]
  const output = plan.step_outputs?.[step.id]
  return (
    <section
      ref={useFocus()}
      class="card step-panel"
      aria-label={`Step ${step.id}`}
      tabIndex={-1}
      onKeyDown={({ key }) => key === 'Escape' && onClose()}
    >
      <header>
        <h2 class="grow cut">
          <Line text={step.title || step.id} />
        </h2>
        <StateBadge state={plan.step_statuses[step.id] ?? 'pending'} />
        <button type="button" class="button plain icon" aria-label="Close the step" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </header>
      <div class="inner stack">
        {run && <Facts run={run} />}
        {error !== undefined && <Notice tone="bad">{error}</Notice>}
        <section class="stack close">
          <h3>Prompt</h3>
          <pre class="code">{step.prompt}</pre>
        </section>
        {run && run.run_id !== null && <Story key={run.run_id} runId={run.run_id} isOver={run.ended_at !== null} />}
        {output !== undefined && (
          <section class="stack close">
            <h3>Output</h3>
            <pre class="code">{output}</pre>
          </section>
        )}
      </div>
    </section>
  )
}

/** Receives the focus when it is shown. */
function useFocus() {
  const panel = useRef<HTMLElement>(null)
  useEffect(() => {
    const [own, before] = [panel.current, document.activeElement]
    own?.focus({ preventScroll: true })
    return () => {
      const isOwn = document.activeElement === document.body || own?.contains(document.activeElement)
      if (isOwn && before instanceof SVGElement) before.focus({ preventScroll: true })
    }
  }, [])
  return panel
}

const Facts = ({ run }: { run: Schema<'StepRun'> }) => (
  <p class="small soft row">
    <span>Wave {run.wave}</span>
    {run.started_at !== null && <Took from={run.started_at} to={run.ended_at} />}
    <span class="number">
      ↑{short(run.input_tokens)} ↓{short(run.output_tokens)}
    </span>
    <span class="number">{money(run.cost_usd)}</span>
    {run.run_id !== null && <a href={hrefOf(`/activity/${run.run_id}`)}>{shortId(run.run_id)}</a>}
    {run.taken_from !== undefined && (
      <a href={hrefOf(`/plans/${run.taken_from}`)}>taken from {shortId(run.taken_from)}</a>
    )}
  </p>
)

/** The step's run, live or from its record. If nothing of the run is kept any more, only the step's output is shown. */
function Story({ runId, isOver }: { runId: string; isOver: boolean }) {
  const live = useLiveRun({ runId, sessionId: runId, isOver })
  if (isOver && live.view.value.blocks.length === 0) return null
  return (
    <section class="stack close" aria-label={isOver ? 'What happened' : 'What happens now'}>
      <h3>{isOver ? 'What happened' : 'What happens now'}</h3>
      <LiveAnswer live={live} sessionId={runId} />
    </section>
  )
}
