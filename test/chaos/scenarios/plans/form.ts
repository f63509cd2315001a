import type { Plan, PlanStep } from '../../../../shared/kernel/plan-step.ts'
import type { Random } from '../../../harness/seed.ts'

/** The prompt of a step as JSON. The model answers the token after `ms` milliseconds; with `writes` it first calls the tool Write. */
export type StepOrder = { token: string; ms: number; writes: boolean }

const IDEMPOTENT_SHARE = 0.3
const WRITE_SHARE = 0.3
const PARALLEL_SHARE = 0.7
const EDGE_SHARE = 0.35

/** A plan of 4 to 7 steps with random dependencies. `name` is unique among the plans of a model. */
export function randomPlan(name: string, random: Random): Plan {
  const ids = Array.from({ length: random.between(4, 7) }, (_, n) => `s${n}`)
  const stepOf = (id: string, n: number): PlanStep => {
    const token = tokenOf(name, id)
    const order: StepOrder = { token, ms: random.between(50, 300), writes: random.chance(WRITE_SHARE) }
    return {
      id,
      prompt: JSON.stringify(order),
      depends_on: ids.slice(0, n).filter(() => random.chance(EDGE_SHARE)),
      idempotent: random.chance(IDEMPOTENT_SHARE),
    }
  }
  return { title: name, steps: ids.map(stepOf), parallel: random.chance(PARALLEL_SHARE) }
}

export const tokenOf = (plan: string, step: string): string => `${plan}-${step}`

/** Reads the first line of a prompt: outputs of other steps may follow. Throws for a prompt that is no order. */
export const readOrder = (prompt: string): StepOrder => JSON.parse(prompt.split('\n', 1)[0] ?? '') as StepOrder
