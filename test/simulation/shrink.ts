import type { Plan } from './plan.ts'
import { type Outcome, simulate } from './simulation.ts'

/** Returns the smallest plan found that breaks the same rule: with fewer faults, clients and steps. It simulates at most `tries` plans. */
export async function shrink(plan: Plan, { rule }: { rule: string }, tries = 150): Promise<Outcome> {
  let best = { plan, outcome: await simulate(plan, { isDetailed: true }) }
  let left = tries
  for (;;) {
    const smaller = await firstBroken(smallerPlans(best.plan), rule, () => left-- > 0)
    if (!smaller) return best.outcome
    best = smaller
  }
}

async function firstBroken(plans: Iterable<Plan>, rule: string, mayTry: () => boolean) {
  for (const plan of plans) {
    if (!mayTry()) return undefined
    const outcome = await simulate(plan, { isDetailed: true })
    if (outcome.violation?.rule === rule) return { plan, outcome }
  }
  return undefined
}

/** The plans that have one thing less. */
function* smallerPlans(plan: Plan): Generator<Plan> {
  for (const faults of withoutOne(plan.faults)) yield { ...plan, faults }
  for (const clients of withoutOne(plan.clients)) yield { ...plan, clients }
  for (const [i, client] of plan.clients.entries()) {
    for (const steps of withoutOne(client.steps)) yield { ...plan, clients: plan.clients.with(i, { steps }) }
  }
  if (plan.workers > 2) yield { ...plan, workers: plan.workers - 1 }
  if (plan.gateways > 1) yield { ...plan, gateways: plan.gateways - 1 }
}

function* withoutOne<T>(items: readonly T[]): Generator<T[]> {
  for (let i = 0; i < items.length; i++) yield items.toSpliced(i, 1)
}
