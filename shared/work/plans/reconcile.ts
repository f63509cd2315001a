import type { JobQueue } from '../queue/port.ts'
import { isEnded } from './plan-runs.ts'
import type { Plans } from './port.ts'

export type ReconcileDeps = {
  plans: Pick<Plans, 'active' | 'get' | 'retire'>
  queue: Pick<JobQueue, 'add' | 'missing'>
  isAlive(executor: number): Promise<boolean>
}

/**
 * Queues every plan that has not ended, has lost its job, and is executed by no living executor. Only plans without a job are read, so
 * that waiting plans cost little. Throws `unavailable` when the store or the queue does not answer.
 */
export async function reconcilePlans({ plans, queue, isAlive }: ReconcileDeps): Promise<void> {
  let after: string | undefined
  for (;;) {
    const page = await plans.active(after)
    if (page.length === 0) return
    const planIds = page.map(({ planId }) => planId)
    const withoutJob = new Set(await queue.missing('plan', planIds))
    for (const { tenant, planId } of page) {
      if (!withoutJob.has(planId)) continue
      const plan = await plans.get(tenant, planId)
      if (!plan || isEnded(plan)) await plans.retire(tenant, planId)
      else if (plan.executor === null || !(await isAlive(plan.executor)))
        await queue.add({ kind: 'plan', tenant, id: planId })
    }
    after = page.at(-1)?.planId
  }
}
