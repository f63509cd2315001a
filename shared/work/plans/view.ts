import type { Priority } from '../../agent/providers/port.ts'
import type { PlanStep } from '../../kernel/plan-step.ts'
import { graphOf } from './graph.ts'
import {
  type PlanHead,
  type PlanRecord,
  type PlanStatus,
  type Spent,
  STEP_STATUSES,
  type StepState,
  type StepStatus,
} from './port.ts'
import { addSpent, NOTHING_SPENT, runOfStep } from './states.ts'

/** How a step has been carried out (D27.1). */
export type StepRunView = Spent & {
  /** 1 for the steps that depend on no other. */
  wave: number
  /** `null` before the step has begun. */
  run_id: string | null
  started_at: string | null
  ended_at: string | null
  taken_from?: string
}

/** A plan as the API shows it (api.md "Plan"). The maps are by step id. */
export type PlanView = {
  id: string
  title?: string
  status: PlanStatus
  steps: readonly PlanStep[]
  step_statuses: Record<string, StepStatus>
  /** The error of each failed step. */
  step_errors?: Record<string, string>
  /** The output of each done step. */
  step_outputs?: Record<string, string>
  step_runs: Record<string, StepRunView>
  usage: Spent
  error?: string
  error_code?: 'no_room' | 'timeout'
  retry_of?: string
  parallel?: true
  timeout_secs?: number
  priority?: Priority
  wait_secs?: number
  deadline_at?: string
  created_at: string
  started_at: string | null
  ended_at: string | null
}

/** A plan as a list shows it. `step_counts` holds every state. */
export type PlanSummary = Pick<
  PlanView,
  'id' | 'title' | 'status' | 'usage' | 'error' | 'error_code' | 'retry_of' | 'created_at' | 'started_at' | 'ended_at'
> & { step_counts: Record<StepStatus, number> }

/** Step ids may be `__proto__`: `Object.fromEntries` makes it a key like any other. */
export function planView(plan: PlanRecord, outputs: ReadonlyMap<string, string>): PlanView {
  const { states, steps, parallel, timeout_secs, priority, wait_secs, deadline_at } = plan
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
    step_runs: stepRuns(plan),
    ...(parallel && { parallel }),
    ...(timeout_secs !== null && { timeout_secs }),
    ...(priority && { priority }),
    ...(wait_secs !== undefined && { wait_secs }),
    ...(deadline_at !== undefined && { deadline_at }),
    ...rest,
  }
}

export function planSummary(plan: PlanHead): PlanSummary {
  const count = (wanted: StepStatus) => plan.states.filter(({ status }) => status === wanted).length
  const counts = STEP_STATUSES.map((status) => [status, count(status)])
  return { ...commonView(plan), step_counts: Object.fromEntries(counts) as Record<StepStatus, number> }
}

function stepRuns({ plan_id, steps, states }: PlanRecord): Record<string, StepRunView> {
  const { waveOf } = graphOf(steps)
  const shown = (state: StepState): StepRunView => ({
    wave: (waveOf.get(state.id) ?? 0) + 1,
    run_id: state.started_at === null ? null : runOfStep(plan_id, state),
    started_at: state.started_at,
    ended_at: state.ended_at,
    ...(state.spent ?? NOTHING_SPENT),
    ...(state.taken_from !== undefined && { taken_from: state.taken_from }),
  })
  return Object.fromEntries(states.map((state) => [state.id, shown(state)]))
}

/** Adds up the usage of the steps that this plan has carried out itself. */
const usageOf = (states: readonly StepState[]): Spent =>
  states
    .filter(({ taken_from }) => taken_from === undefined)
    .reduce((sum, { spent }) => (spent ? addSpent(sum, spent) : sum), NOTHING_SPENT)

function commonView({ plan_id, title, status, states, error, error_code, retry_of, ...times }: PlanHead) {
  const { created_at, started_at, ended_at } = times
  return {
    id: plan_id,
    ...(title !== null && { title }),
    status,
    usage: usageOf(states),
    ...(error !== null && { error }),
    ...(error_code && { error_code }),
    ...(retry_of !== undefined && { retry_of }),
    created_at,
    started_at,
    ended_at,
  }
}
