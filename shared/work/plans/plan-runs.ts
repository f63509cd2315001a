import type { SourceState } from '../../cluster/following/port.ts'
import type { QueuedRunSource } from '../../cluster/following/queue-places.ts'
import { planIdOf } from '../../kernel/ids.ts'
import type { PlanHead, PlanRecord, Plans } from './port.ts'
import { runOfStep } from './states.ts'
import { requestCancel } from './transitions.ts'

export type PlanRunsDeps = {
  plans: Pick<Plans, 'takeCreated' | 'get' | 'change'>
  now: () => Date
}

/** Finds the runs of plans by their records, and cancels the plans that no executor has begun. */
export function createPlanRuns({ plans, now }: PlanRunsDeps): QueuedRunSource {
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
      return changed?.status === 'cancelled' // The executor that gets the plan's job announces the end.
    },
  }
}

/** Among how many running plans of a tenant a step is searched. */
const MOST_AT_WORK = 200

/** Finds the runs of running steps in the newest running plans of the tenant. */
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
