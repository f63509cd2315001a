import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { AppError, notFound } from '../../../shared/kernel/errors.ts'
import type { PlanStep } from '../../../shared/kernel/plan-step.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { createIdempotency } from '../../../shared/platform/store/idempotency.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { NO_EVENTS } from '../../../shared/tenancy/events/port.ts'
import { PlanCalls } from '../../../shared/work/plans/calls.ts'
import type { PlanRecord, Plans } from '../../../shared/work/plans/port.ts'
import { StoredPlans } from '../../../shared/work/plans/store/plans.ts'
import { beginStep, endStep, finish } from '../../../shared/work/plans/transitions.ts'
import type { Job } from '../../../shared/work/queue/port.ts'
import { NO_FILES } from '../../support/no-files.ts'
import { FedStream } from '../flows/calls/fed-stream.ts'
import { begin } from './plan-setup.ts'

export const EXECUTOR = 7
/** All times of a test, in ISO 8601. */
export const AT = '2026-11-22T09:30:00.000Z'

export const stepOf = (id: string, ...after: string[]): PlanStep => ({
  id,
  prompt: `do ${id}`,
  ...(after.length > 0 && { depends_on: after }),
})

export type Process = {
  calls: PlanCalls
  plans: Plans
  jobs: Job[]
  /** Ids of the runs that were cancelled and followed. */
  cancelled: string[]
  followed: [runId: string, after: number][]
  /** The streams of the runs that are followed, in turn; without one the run is unknown. */
  streams: FedStream[]
  /** Whether the queue and the relay answer. */
  isQueueAway: boolean
}

/** The plan calls of one process on a store that other processes use, too. */
export function openProcess(
  store: Store,
  wrap: (plans: Plans) => Plans = (plans) => plans,
  expectRun?: Broker['expectRun'],
): Process {
  const plans = new StoredPlans(store)
  const parts = {
    plans,
    jobs: [] as Job[],
    cancelled: [] as string[],
    followed: [] as [string, number][],
    streams: [] as FedStream[],
    isQueueAway: false,
  }
  const away = () => {
    if (parts.isQueueAway) throw new AppError('unavailable', 'the queue does not answer')
  }
  const queue = {
    async add(job: Job) {
      away()
      if (!parts.jobs.some(({ id }) => id === job.id)) parts.jobs.push(job)
    },
  }
  const broker: Pick<Broker, 'followRun' | 'cancelRun' | 'expectRun'> = {
    ...(expectRun && { expectRun }),
    async cancelRun(_tenant, runId) {
      away()
      parts.cancelled.push(runId)
    },
    async followRun(_tenant, runId, after) {
      parts.followed.push([runId, after])
      const stream = parts.streams.shift()
      if (!stream) throw notFound('no such run')
      return stream
    },
  }
  const idempotency = createIdempotency(store)
  const calls = new PlanCalls({
    plans: wrap(plans),
    idempotency,
    queue,
    events: NO_EVENTS,
    broker,
    files: NO_FILES,
    now: () => new Date(AT),
  })
  return Object.assign(parts, { calls })
}

/** Changes a stored plan as an executor does. */
export function executorOf(plans: Plans, tenant: TenantId, planId: string) {
  const by = { executor: EXECUTOR, at: AT }
  const change = async (transition: Parameters<Plans['change']>[2]): Promise<PlanRecord> => {
    const changed = await plans.change(tenant, planId, transition)
    if (!changed) throw new Error('the transition does not apply')
    return changed
  }
  return {
    begin: () => change(begin(by)),
    beginStep: (id: string) => change(beginStep(id, by)),
    async endStep(id: string, output: string) {
      await plans.saveOutput(tenant, planId, id, output)
      return change(endStep(id, by))
    },
    failStep: (id: string, error: string) => change(endStep(id, { ...by, error })),
    finish: () => change(finish(by)),
  }
}

export async function readAll(frames: AsyncIterable<Frames>): Promise<string> {
  let text = ''
  for await (const chunk of frames) text += Buffer.from(chunk.text)
  return text
}

/** Numbers and names of the events in a text. */
export const headsOf = (text: string): string[] =>
  [...text.matchAll(/^id: (\d+)\nevent: (\w+)$/gm)].map(([, id, event]) => `${id} ${event}`)
