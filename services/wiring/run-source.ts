import type { QueuedRunSource } from '../../shared/cluster/following/queue-places.ts'
import { createFlowRuns } from '../../shared/work/flows/calls/flow-runs.ts'
import { createPlanRuns } from '../../shared/work/plans/plan-runs.ts'
import type { JobQueue } from '../../shared/work/queue/port.ts'
import type { OpenedStore } from './open-store.ts'

/** Find the queued runs of flows and plans in the store. */
export const createRunSources = (
  { dispatches, plans }: Pick<OpenedStore, 'dispatches' | 'plans'>,
  queue: JobQueue,
): QueuedRunSource[] => [createFlowRuns({ dispatches, queue }), createPlanRuns({ plans, queue, now: () => new Date() })]
