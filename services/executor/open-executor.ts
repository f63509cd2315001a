import type { Config } from '../../shared/config/config.ts'
import { PlanSchedules } from '../../shared/plans/schedules.ts'
import type { Consume, Job } from '../../shared/queue/port.ts'
import { unattended } from '../../shared/tools/unattended.ts'
import { WebhookDispatcher } from '../../shared/webhooks/dispatcher.ts'
import { createActing } from '../runs/acting.ts'
import { createWorkspaces } from '../runs/workspaces.ts'
import { openModelSource } from '../wiring/model-source.ts'
import { announcingEnds } from './announce-ends.ts'
import { Executor, type JobWork } from './executor.ts'
import { openFlowJobs } from './open-flow-jobs.ts'
import type { Membership, OpenParts } from './open-parts.ts'
import { openPlanJobs } from './open-plan-jobs.ts'
import { startSweeps } from './open-sweeps.ts'

export type OpenedExecutor = {
  executor: Executor
  /** Begins to take jobs. */
  start(consume: Consume, membership: Membership): Promise<void>
  close(): Promise<void>
}

const MAX_TOOL_OUTPUT_CHARS = 64 * 1024
/** A plan runs up to 8 steps at a time. */
const STEPS_PER_PLAN = 8
const TICKS_AT_ONCE = 8

/** Opens an executor with what flows and plans need. */
export async function openExecutor(config: Config, parts: OpenParts): Promise<OpenedExecutor> {
  const { toolBox, fence, metrics, tenantConfig, log } = parts
  const workspaces = createWorkspaces(config.workspaceDir)
  const plansPerExecutor = Math.max(1, Math.floor(config.runsPerWorker / STEPS_PER_PLAN))
  const executor = new Executor({ limits: { ...config, plansPerExecutor }, workspaces, metrics, log })
  const tools = {
    toolBox: unattended(toolBox, config.planPermissions),
    maxOutputChars: MAX_TOOL_OUTPUT_CHARS,
    ...createActing(fence, metrics),
  }
  const models = await openModelSource(config, tenantConfig, log)
  const all = { ...parts, tools, workspaces, executor, models }
  const announce = announcerOf(parts, executor)
  const dispatcher = dispatcherOf(parts)
  let stopSweeps = () => {}
  return {
    executor,
    async start(consume, membership) {
      const flows = openFlowJobs(config, all, membership)
      const works: JobWork[] = [announce(workOf('flow', flows, config.runsPerWorker))]
      const schedules = config.hasPlanQueue ? schedulesOf(parts) : undefined
      if (schedules) {
        works.push(announce(workOf('plan', openPlanJobs(config, all, membership), plansPerExecutor)))
        works.push(workOf('schedule', ticksOf(schedules), TICKS_AT_ONCE))
      }
      await executor.start(consume, works)
      dispatcher?.start()
      stopSweeps = startSweeps(parts, membership, schedules && { queue: parts.queue, schedules })
    },
    async close() {
      stopSweeps()
      await dispatcher?.close()
    },
  }
}

type Handlers = { handle: JobWork['handle']; givenUp: JobWork['givenUp'] }

const workOf = (kind: JobWork['kind'], handlers: Handlers, concurrency: number): JobWork => ({
  kind,
  concurrency,
  handle: (job) => handlers.handle(job),
  givenUp: (job) => handlers.givenUp(job),
})

/** Stores the end of each flow and plan for the tenants' webhooks. */
function announcerOf({ tenantConfig, store, log }: OpenParts, executor: Executor): (work: JobWork) => JobWork {
  if (!tenantConfig) return (work) => work
  const { dispatches, plans } = store
  const deps = { outbox: tenantConfig.outbox, dispatches, plans, draining: executor.draining, log }
  return (work) => ({
    ...work,
    handle: announcingEnds(work.handle, deps),
    givenUp: announcingEnds(work.givenUp, deps),
  })
}

function dispatcherOf({ tenantConfig, store, metrics, log }: OpenParts): WebhookDispatcher | undefined {
  if (!tenantConfig) return undefined
  const { configs, webhooks, egress } = tenantConfig
  const secretsOf = webhooks.secretsOf.bind(webhooks)
  return new WebhookDispatcher({ configs, secretsOf, store: store.deliveries, egress, metrics, log })
}

function schedulesOf({ store, queue, schedules }: OpenParts): PlanSchedules {
  const { plans, planSchedules, idempotency } = store
  return new PlanSchedules({ plans, idempotency, queue, schedules, store: planSchedules, now: () => new Date() })
}

/** The jobs of kind `schedule` are ticks. One whose executors died is over: its plan is stored, or the next tick comes. */
const ticksOf = (schedules: PlanSchedules): Handlers => ({
  handle: (job: Job) => schedules.fire(job),
  givenUp: async () => {},
})
