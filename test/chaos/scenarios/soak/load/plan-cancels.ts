import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PlanView } from '../../../../../shared/work/plans/view.ts'
import { now } from '../../../history.ts'
import type { StepOrder } from '../../plans/form.ts'
import { type Loading, repeat } from './runs.ts'

/** A plan whose cancel was answered 200, as it was seen last. `tokens` are those of its steps. */
export type CancelledPlan = { id: string; cancelledAt: number; view: PlanView | undefined; tokens: string[] }

/** An executor that dies with a cancelled plan is replaced within 16 s, and its replacement may die, too. */
const ENDED_WITHIN_MS = 60_000
const LOOK_EVERY_MS = 300

/** Clients that submit a plan of slow steps and cancel it. */
export async function cancelPlans(loading: Loading): Promise<CancelledPlan[]> {
  const { world } = loading
  const cancelled: CancelledPlan[] = []
  await repeat(loading, async (random) => {
    const tokens = ['a', 'b', 'c'].map((step) => `cancel-${randomUUID()}-${step}`)
    const orderOf = (token: string): StepOrder => ({ token, ms: random.between(500, 1_500), writes: false })
    const steps = tokens.map((token, n) => ({
      id: `s${n}`,
      prompt: JSON.stringify(orderOf(token)),
      depends_on: n === 0 ? [] : [`s${n - 1}`],
    }))
    const { status, body } = await world.ask(random.pick(world.gateways), { path: '/plans/submit', body: { steps } })
    if (status !== 202) return
    const { id } = body as PlanView
    await sleep(random.between(0, 2_500))
    const answer = await world.ask(random.pick(world.gateways), { method: 'POST', path: `/plans/${id}/cancel` })
    if (answer.status !== 200) return
    const plan: CancelledPlan = { id, cancelledAt: now(), view: answer.body as PlanView, tokens }
    cancelled.push(plan)
    for (
      const deadline = now() + ENDED_WITHIN_MS;
      !plan.view?.ended_at && now() < deadline;
      await sleep(LOOK_EVERY_MS)
    ) {
      const look = await world.ask(random.pick(world.gateways), { path: `/plans/${id}` })
      if (look.status === 200) plan.view = look.body as PlanView
    }
  })
  return cancelled
}
