import { joinRunSources } from '../../shared/cluster/queued-runs/join-run-sources.ts'
import type { QueuedRunSource } from '../../shared/cluster/queued-runs/run-source.ts'
import { createFlowRuns } from '../../shared/work/flows/calls/flow-runs.ts'
import { createPlanRuns } from '../../shared/work/plans/plan-runs.ts'
import type { JobQueue } from '../../shared/work/queue/port.ts'
import type { OpenedStore } from './open-store.ts'

/** Finds the queued runs of flows and plans in the store. */
export const createRunSource = (
  { dispatches, plans }: Pick<OpenedStore, 'dispatches' | 'plans'>,
  queue: JobQueue,
): QueuedRunSource =>
  joinRunSources(createFlowRuns({ dispatches, queue }), createPlanRuns({ plans, queue, now: () => new Date() }))
