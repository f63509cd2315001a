import type { QueuedRunSource } from '../../shared/broker/port.ts'
import { joinRunSources } from '../../shared/broker/queued/join-run-sources.ts'
import { createFlowRuns } from '../../shared/flows/calls/flow-runs.ts'
import { createPlanRuns } from '../../shared/plans/plan-runs.ts'
import type { JobQueue } from '../../shared/queue/port.ts'
import type { OpenedStore } from './store.ts'

/** Finds the queued runs of flows and plans in the store. */
export const openRunSource = (
  { dispatches, plans }: Pick<OpenedStore, 'dispatches' | 'plans'>,
  queue: JobQueue,
): QueuedRunSource =>
  joinRunSources(createFlowRuns({ dispatches, queue }), createPlanRuns({ plans, queue, now: () => new Date() }))
