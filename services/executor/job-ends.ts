import { setTimeout as sleep } from 'node:timers/promises'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import type { WebhookOutbox } from '../../shared/tenancy/webhooks/outbox.ts'
import type { WebhookEvent } from '../../shared/tenancy/webhooks/port.ts'
import type { Batch } from '../../shared/work/flows/batch/batch.ts'
import type { Dispatch, Dispatches } from '../../shared/work/flows/port.ts'
import { isEnded as hasFlowEnded } from '../../shared/work/flows/transitions.ts'
import { isEnded as hasPlanEnded } from '../../shared/work/plans/plan-runs.ts'
import type { PlanRecord, Plans } from '../../shared/work/plans/port.ts'
import type { Job, JobEnd, JobHandler } from '../../shared/work/queue/port.ts'

export type PublishDeps = {
  events: EventSink
  /** `undefined` without runtime configuration, where there are no webhooks. */
  outbox: Pick<WebhookOutbox, 'publish'> | undefined
  dispatches: Pick<Dispatches, 'get'>
  plans: Pick<Plans, 'get'>
  /** Aborted when this process shuts down. */
  draining: AbortSignal
  log: Log
}

const RETRY_MS = 1_000

/**
 * Wraps the handler of jobs: when the flow or plan of a job has ended, its webhooks' deliveries are stored before the job ends, and the end
 * is an event of the tenant. If this process dies in between, or the store stays away until it shuts down, the executor that gets the job next stores them.
 */
export const publishingEnds =
  (handle: JobHandler, deps: PublishDeps): JobHandler =>
  async (job, giveWay) => {
    const end = await handle(job, giveWay)
    return (await publishEnd(job, deps)) ? end : AGAIN
  }

const AGAIN: JobEnd = { again: true }

/** Returns whether the job can end. */
async function publishEnd(job: Job, deps: PublishDeps): Promise<boolean> {
  const { draining, log } = deps
  const publish = async () => {
    const event = await eventOf(job, deps)
    if (event) await tell(job.tenant, event, deps)
  }
  const mayPass = (cause: unknown) => {
    log.debug('the end of a flow or plan cannot be announced at the moment', { job: job.id, cause })
    return !draining.aborted
  }
  return retryUntil(publish, { pauses: RETRY_MS, mayPass }).then(
    () => true,
    () => false,
  )
}

type Told = Pick<PublishDeps, 'events' | 'outbox'>

async function tell(tenant: TenantId, event: WebhookEvent, { events, outbox }: Told): Promise<void> {
  await outbox?.publish(tenant, event)
  events.append(tenant, event)
}

/** Tells of the end of a batch (D55.5). */
export const tellingBatches =
  (told: Told) =>
  (tenant: TenantId, batch: Batch): Promise<void> =>
    tell(tenant, batchEnded(batch), told)

async function eventOf({ kind, tenant, id }: Job, deps: PublishDeps): Promise<WebhookEvent | undefined> {
  if (kind === 'plan') {
    const plan = await deps.plans.get(tenant, id)
    return plan && hasPlanEnded(plan) ? planEnded(plan) : undefined
  }
  const dispatch = await deps.dispatches.get(tenant, id)
  const isTold = dispatch?.kind === 'run' && hasFlowEnded(dispatch) && dispatch.status !== 'rejected' // A refused run leaves no event (D36.1).
  return isTold ? flowEnded(dispatch) : undefined
}

const planEnded = ({ plan_id, status, ended_at }: PlanRecord): WebhookEvent => ({
  type: 'plan.ended',
  subject: plan_id,
  at: ended_at ?? new Date().toISOString(),
  data: { plan_id, status },
})

const batchEnded = ({ batch_id, flow, status, ended_at }: Batch): WebhookEvent => ({
  type: 'batch.ended',
  subject: batch_id,
  at: ended_at ?? new Date().toISOString(),
  data: { batch_id, flow: flow.name, flow_version: flow.version, status },
})

const flowEnded = ({ trace_id, flow, status, ended_at }: Dispatch): WebhookEvent => ({
  type: 'flow.ended',
  subject: trace_id,
  at: ended_at ?? new Date().toISOString(),
  data: { trace_id, flow: flow.name, flow_version: flow.version, status },
})

/** How a job ended; `undefined` while its work continues. */
export type Settled = { end: JobEnd | undefined } | undefined

/** The job goes back to the queue, for another process or the next one. */
export const GIVEN_BACK: NonNullable<Settled> = { end: AGAIN }

const LOOK_EVERY_MS = 1_000

/** Calls `settle` until it says how the job ended, with a pause of a second. Never rejects. */
export type UntilEnded = (
  job: Job,
  settle: (tenant: TenantId, id: string) => Promise<Settled>,
) => Promise<JobEnd | undefined>

/**
 * Keeps the jobs of one kind until their work has ended, here or elsewhere: if this process dies before, the queue hands a job to
 * another executor. `onFailure` is called with each failure of `settle`, which is called again.
 */
export function retryJobs(onFailure: (id: string, cause: unknown) => void): UntilEnded {
  /** The jobs that a handler of this process is at work on. */
  const active = new Set<string>()
  const once = async (id: string, settle: () => Promise<Settled>): Promise<Settled> => {
    if (active.has(id)) return undefined // The queue has handed the job out again while its first handler still works.
    active.add(id)
    try {
      return await settle()
    } catch (cause) {
      onFailure(id, cause)
      return undefined
    } finally {
      active.delete(id)
    }
  }
  return async ({ tenant, id }, settle) => {
    for (;;) {
      const settled = await once(id, () => settle(tenant, id))
      if (settled) return settled.end
      await sleep(LOOK_EVERY_MS)
    }
  }
}
