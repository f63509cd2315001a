import type { PlanStep } from '../../kernel/plan-step.ts'
import { type PlanHead, type PlanRecord, type PlanStatus, STEP_STATUSES, type StepStatus } from './port.ts'

/** A plan as the API shows it (api.md "Plan"). The maps are by step id. */
export type PlanView = {
  id: string
  title?: string
  status: PlanStatus
  steps: readonly PlanStep[]
  step_statuses: Record<string, StepStatus>
  /** Of failed steps. */
  step_errors?: Record<string, string>
  /** Of done steps. */
  step_outputs?: Record<string, string>
  error?: string
  parallel?: true
  timeout_secs?: number
  created_at: string
  started_at: string | null
  ended_at: string | null
}

/** A plan as a list shows it. `step_counts` holds every state. */
export type PlanSummary = Pick<
  PlanView,
  'id' | 'title' | 'status' | 'error' | 'created_at' | 'started_at' | 'ended_at'
> & { step_counts: Record<StepStatus, number> }

/** Step ids may be `__proto__`: `Object.fromEntries` makes it a key like any other. */
export function planView(plan: PlanRecord, outputs: ReadonlyMap<string, string>): PlanView {
  const { states, steps, parallel, timeout_secs } = plan
  const failed = states.filter(({ status }) => status === 'failed')
  const done = states.filter(({ status }) => status === 'done')
  const { id, title, status, ...rest } = commonView(plan)
  return {
    id,
    ...(title !== undefined && { title }),
    status,
    steps,
    step_statuses: Object.fromEntries(states.map((state) => [state.id, state.status])),
    ...(failed.length > 0 && { step_errors: Object.fromEntries(failed.map((state) => [state.id, state.error ?? ''])) }),
    ...(done.length > 0 && {
      step_outputs: Object.fromEntries(done.map((state) => [state.id, outputs.get(state.id) ?? ''])),
    }),
    ...(parallel && { parallel }),
    ...(timeout_secs !== null && { timeout_secs }),
    ...rest,
  }
}

export function planSummary(plan: PlanHead): PlanSummary {
  const count = (wanted: StepStatus) => plan.states.filter(({ status }) => status === wanted).length
  const counts = STEP_STATUSES.map((status) => [status, count(status)])
  return { ...commonView(plan), step_counts: Object.fromEntries(counts) as Record<StepStatus, number> }
}

function commonView({ plan_id, title, status, error, created_at, started_at, ended_at }: PlanHead) {
  return {
    id: plan_id,
    ...(title !== null && { title }),
    status,
    ...(error !== null && { error }),
    created_at,
    started_at,
    ended_at,
  }
}
