import type { Config } from '../../shared/config/config.ts'
import { PlanSchedules } from '../../shared/plans/schedules.ts'
import type { Consume, Job } from '../../shared/queue/port.ts'
import { unattended } from '../../shared/tools/unattended.ts'
import { createActing } from '../runs/acting.ts'
import { createWorkspaces } from '../runs/workspaces.ts'
import { openModelSource } from '../wiring/model-source.ts'
import { Executor, type JobWork } from './executor.ts'
import { openFlowJobs } from './open-flow-jobs.ts'
import type { Membership, OpenParts } from './open-parts.ts'
import { openPlanJobs } from './open-plan-jobs.ts'
import { startSweeps } from './open-sweeps.ts'

export type OpenedExecutor = {
  executor: Executor
  /** Begins to take jobs. */
  start(consume: Consume, membership: Membership): Promise<void>
  close(): void
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
  let stopSweeps = () => {}
  return {
    executor,
    async start(consume, membership) {
      const flows = openFlowJobs(config, all, membership)
      const works: JobWork[] = [workOf('flow', flows, config.runsPerWorker)]
      const schedules = config.hasPlanQueue ? schedulesOf(parts) : undefined
      if (schedules) {
        works.push(workOf('plan', openPlanJobs(config, all, membership), plansPerExecutor))
        works.push(workOf('schedule', ticksOf(schedules), TICKS_AT_ONCE))
      }
      await executor.start(consume, works)
      stopSweeps = startSweeps(parts, membership, schedules && { queue: parts.queue, schedules })
    },
    close: () => stopSweeps(),
  }
}

type Handlers = { handle: JobWork['handle']; givenUp: JobWork['givenUp'] }

const workOf = (kind: JobWork['kind'], handlers: Handlers, concurrency: number): JobWork => ({
  kind,
  concurrency,
  handle: (job) => handlers.handle(job),
  givenUp: (job) => handlers.givenUp(job),
})

function schedulesOf({ store, queue, schedules }: OpenParts): PlanSchedules {
  const { plans, planSchedules, idempotency } = store
  return new PlanSchedules({ plans, idempotency, queue, schedules, store: planSchedules, now: () => new Date() })
}

/** The jobs of kind `schedule` are ticks. One whose executors died is over: its plan is stored, or the next tick comes. */
const ticksOf = (schedules: PlanSchedules): Handlers => ({
  handle: (job: Job) => schedules.fire(job),
  givenUp: async () => {},
})
