import type { SourceState } from '../../cluster/following/port.ts'
import type { QueuedRunSource } from '../../cluster/following/queue-places.ts'
import { planIdOf } from '../../kernel/ids.ts'
import type { JobQueue } from '../queue/port.ts'
import type { PlanHead, PlanRecord, Plans } from './port.ts'
import { runOfStep } from './states.ts'
import { requestCancel } from './transitions.ts'

export type PlanRunsDeps = {
  plans: Pick<Plans, 'takeCreated' | 'get' | 'change'>
  queue: Pick<JobQueue, 'remove'>
  now: () => Date
}

/** Finds the runs of plans by their records, and cancels the plans that no executor has begun. */
export function createPlanRuns({ plans, queue, now }: PlanRunsDeps): QueuedRunSource {
  return {
    takeCreated(tenant, runId) {
      const plan = plans.takeCreated(tenant, planIdOf(runId))
      return plan && stateOf(plan)
    },
    async find(tenant, runId) {
      const plan = await plans.get(tenant, planIdOf(runId))
      return plan && stateOf(plan)
    },
    async cancelWaiting(tenant, runId) {
      const id = planIdOf(runId)
      const plan = await plans.get(tenant, id)
      if (plan?.status !== 'queued') return false
      const changed = await plans.change(tenant, id, requestCancel(now().toISOString()))
      if (changed?.status !== 'cancelled') return false
      await queue.remove({ kind: 'plan', tenant, id }).catch(() => {}) // An executor that takes it anyway finds it ended.
      return true
    },
  }
}

/** Plans of a tenant that are at work at the same time, among which a step is looked for. */
const MOST_AT_WORK = 200

/** Finds the runs of the steps that are at work, by the newest plans of the tenant that run. */
export const createStepRuns = ({ plans }: { plans: Pick<Plans, 'list'> }): QueuedRunSource => ({
  async find(tenant, runId) {
    const { plans: running } = await plans.list(tenant, { status: 'running', limit: MOST_AT_WORK })
    const isOf = ({ plan_id, states }: PlanHead) =>
      states.some((state) => state.status === 'running' && runOfStep(plan_id, state) === runId)
    const { executor: epoch } = running.find(isOf) ?? { executor: null }
    return epoch === null ? undefined : { state: 'at', epoch }
  },
})

export const isEnded = ({ status }: Pick<PlanRecord, 'status'>): boolean => status !== 'queued' && status !== 'running'

function stateOf(plan: PlanRecord): SourceState {
  const { status, executor: epoch, created_at } = plan
  if (status === 'queued') return { state: 'waiting', started_at: created_at }
  if (epoch !== null) return { state: isEnded(plan) ? 'ended' : 'at', epoch }
  return { state: 'ended', epoch, code: status === 'cancelled' ? 'cancelled' : 'worker_lost' }
}
