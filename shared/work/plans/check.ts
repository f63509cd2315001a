import { MAX_PROBLEMS, type Problem, problemOfBody } from '../../kernel/errors.ts'
import { wavesOf } from './graph.ts'
import { planProblems } from './plan.ts'
import type { PlanRequest } from './submit.ts'

/** `waves` holds the ids of the steps that can run at the same time, and is empty while there are problems. */
export type PlanCheck = { problems: Problem[]; waves: string[][] }

/** Reports the errors that a submit of this plan would have, all at once, and stores nothing (D27.3). */
export function checkPlan(plan: PlanRequest): PlanCheck {
  const found = [...planProblems(plan)].slice(0, MAX_PROBLEMS)
  const problems = found.map(({ path, message }) => ({ param: path, message }))
  const waves = problems.length > 0 ? [] : wavesOf(plan.steps).waves.map((wave) => wave.map(({ id }) => id))
  return { problems, waves }
}

/** The same for a plan that its schema has refused before it was read. Throws `cause` if it is another error. */
export const refusedPlan = (cause: unknown): PlanCheck => ({ problems: [problemOfBody(cause)], waves: [] })
