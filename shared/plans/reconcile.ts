import type { JobQueue } from '../queue/port.ts'
import { isEnded } from './plan-runs.ts'
import type { Plans } from './port.ts'

export type ReconcileDeps = {
  plans: Pick<Plans, 'active' | 'get' | 'retire'>
  queue: Pick<JobQueue, 'add'>
  isAlive(executor: number): Promise<boolean>
}

/**
 * Queues every plan that has not ended and that no living executor has, in case its job was lost. An executor that takes the job of a
 * plan whose executor died goes on with it. Throws `unavailable` when the store or the queue does not answer.
 */
export async function reconcilePlans({ plans, queue, isAlive }: ReconcileDeps): Promise<void> {
  let after: string | undefined
  for (;;) {
    const page = await plans.active(after)
    if (page.length === 0) return
    for (const { tenant, planId } of page) {
      const plan = await plans.get(tenant, planId)
      if (!plan || isEnded(plan)) await plans.retire(tenant, planId)
      else if (plan.executor === null || !(await isAlive(plan.executor)))
        await queue.add({ kind: 'plan', tenant, id: planId })
    }
    after = page.at(-1)?.planId
  }
}
