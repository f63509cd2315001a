import { MAX_PROBLEMS, type Problem, problemOfBody } from '../../kernel/errors.ts'
import { wavesOf } from './graph.ts'
import { planProblems } from './plan.ts'
import type { PlanRequest } from './submit.ts'

/** `waves` holds the ids of the steps that can run at the same time, and is empty while there are problems. */
export type PlanCheck = { problems: Problem[]; waves: string[][] }

/** Says what a submit of this plan would say, with all problems at once, and stores nothing (D27.3). */
export function checkPlan(plan: PlanRequest): PlanCheck {
  const found = [...planProblems(plan)].slice(0, MAX_PROBLEMS)
  const problems = found.map(({ path, message }) => ({ param: path, message }))
  const waves = problems.length > 0 ? [] : wavesOf(plan.steps).waves.map((wave) => wave.map(({ id }) => id))
  return { problems, waves }
}

/** The same for a plan that its schema refuses, which is why it was not read. Throws `cause` when it is another error. */
export const refusedPlan = (cause: unknown): PlanCheck => ({ problems: [problemOfBody(cause)], waves: [] })
