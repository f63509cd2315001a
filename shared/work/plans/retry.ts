import { conflict } from '../../kernel/errors.ts'
import { isEnded } from './plan-runs.ts'
import type { PlanRecord, StepState } from './port.ts'
import { newPlan } from './transitions.ts'

/** Outputs are kept for 60 days, and the new plan needs them for 30: so it repeats steps that were done longer ago. */
const TAKEN_WITHIN_MS = 30 * 86_400_000

/** Throws `conflict` for a plan that has not ended, and for one in which all steps are done. */
export function assertRepeatable(plan: PlanRecord): void {
  if (!isEnded(plan))
    throw conflict(`the plan is ${plan.status}: wait for its end, or cancel it, before it is repeated`)
  if (plan.status === 'done') throw conflict('all steps of the plan are done: submit it as a new plan to run it again')
}

export type Retry = { id: string; subject: string; idempotencyKey?: string | undefined; at: string }

/** The plan that takes over the done steps of an ended one and carries out the others (D27.2). */
export function retryOf(plan: PlanRecord, { id, subject, idempotencyKey, at }: Retry): PlanRecord {
  const { plan_id, title, steps, parallel, timeout_secs, priority, wait_secs } = plan
  const request = {
    steps: [...steps],
    parallel,
    ...(title !== null && { title }),
    ...(timeout_secs !== null && { timeout_secs }),
    ...(priority && { priority }),
    ...(wait_secs !== undefined && { wait_secs }),
  }
  const fresh = newPlan({ ...request, id, subject, idempotencyKey, at })
  const earlier = new Map(takenFrom(plan, Date.parse(at)).map((state) => [state.id, state]))
  return { ...fresh, retry_of: plan_id, states: fresh.states.map((state) => earlier.get(state.id) ?? state) }
}

/**
 * The done steps that are not repeated. The files of a plan are deleted with it, so a step whose files are still needed is repeated,
 * too: one with `writes` on which a repeated step depends, directly or indirectly.
 */
function takenFrom({ plan_id, steps, states }: PlanRecord, nowMs: number): StepState[] {
  const isKept = ({ status, ended_at }: StepState) =>
    status === 'done' && ended_at !== null && nowMs - Date.parse(ended_at) < TAKEN_WITHIN_MS
  const kept = states.filter(isKept)
  const keptIds = new Set(kept.map(({ id }) => id))
  const byId = new Map(steps.map((step) => [step.id, step]))
  const needed = new Set<string>()
  const open = steps.filter(({ id }) => !keptIds.has(id))
  for (let step = open.pop(); step; step = open.pop()) {
    for (const id of step.depends_on ?? []) {
      const before = byId.get(id)
      if (before && !needed.has(id)) open.push(before)
      needed.add(id)
    }
  }
  const hasFiles = (id: string) => needed.has(id) && (byId.get(id)?.writes ?? []).length > 0
  return kept.filter(({ id }) => !hasFiles(id)).map((state) => ({ ...state, taken_from: state.taken_from ?? plan_id }))
}
