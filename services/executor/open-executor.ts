import { CallPool } from '../../shared/agent/providers/batch/pool/pool.ts'
import { unattended } from '../../shared/agent/tools/unattended.ts'
import { planIdOf, planRunId } from '../../shared/kernel/ids.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { UsageRecorder } from '../../shared/tenancy/usage/recorder.ts'
import { WebhookDispatcher } from '../../shared/tenancy/webhooks/dispatcher.ts'
import { isEnded } from '../../shared/work/plans/plan-runs.ts'
import { PlanSchedules } from '../../shared/work/plans/schedules.ts'
import { PlanTicks } from '../../shared/work/plans/ticks.ts'
import type { Consume, Job } from '../../shared/work/queue/port.ts'
import { mostSlots, type SlotLimits } from '../../shared/work/queue/slots.ts'
import { createFenceGuard } from '../../shared/work/runs/fence-guard.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'
import { RunReporter } from '../../shared/work/runs/run-report.ts'
import { createModelSource } from '../wiring/models/create-models.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import { openWorkspaces } from '../wiring/open-workspaces.ts'
import { BatchJobs } from './batch-jobs.ts'
import { BatchWaves } from './batch-waves.ts'
import { ITEMS_AT_ONCE } from './chunk-work.ts'
import { createFlowJobs } from './create-flow-jobs.ts'
import { Executor, type JobWork } from './executor.ts'
import type { FlowJobs } from './flow-jobs.ts'
import { publishingEnds, tellingBatches } from './job-ends.ts'
import type { ExecutorParts, Membership, OpenParts } from './open-parts.ts'
import { startSweeps } from './open-sweeps.ts'
import { PlanJobs } from './plan-jobs.ts'
import { createPlanSteps } from './plan-steps.ts'
import { patientChecks } from './unhurried-flows.ts'

type ExecutorSettings = Settings['executor']

export type OpenedExecutor = {
  executor: Executor
  /** Begins to take jobs. */
  start(consume: Consume, membership: Membership): Promise<void>
  close(): Promise<void>
}

const MAX_TOOL_OUTPUT_CHARS = 64 * 1024
/** A plan runs up to 8 steps at a time. */
const STEPS_PER_PLAN = 8
/** Ticks at a time. They take milliseconds, so tenants need no shares. */
const TICKS: SlotLimits = { max: 8, maxPerTenant: 8 }

/** Opens an executor with the parts that flows and plans need. */
export async function openExecutor(settings: ExecutorSettings, parts: OpenParts): Promise<OpenedExecutor> {
  const { toolBox, fence, events, recorder, metrics, tenantConfig, isHeapHigh, log } = parts
  const opening = { sweeps: { isPlanOver: planLook(parts) }, onLeft: toolBox.release, log }
  const { workspaces, ...opened } = await openWorkspaces(settings.workspaces, opening)
  const slots = slotsOf(settings)
  const limits = { maxRuns: mostRuns(slots), runResumeMs: settings.runResumeMs }
  const usage = new UsageRecorder({ store: parts.store.usage, log })
  const executor = new Executor({ limits, workspaces, isHeapHigh, events, usage, recorder, metrics, log })
  const tools = {
    toolBox: unattended(toolBox, settings.planPermissions),
    maxOutputChars: MAX_TOOL_OUTPUT_CHARS,
    ...createFenceGuard(fence, metrics),
  }
  const models = await createModelSource(settings.models, tenantConfig, log)
  const all = { ...parts, tools, workspaces, executor, models, usage }
  const publishing = publisherOf(parts, executor)
  const dispatcher = dispatcherOf(parts)
  let stopSweeps = () => {}
  return {
    executor,
    async start(consume, membership) {
      const flows = createFlowJobs(settings, all, membership)
      const works = [publishing(workOf('flow', flows, slots.flows))]
      const batches = tenantConfig && createBatchJobs(settings, { ...all, tenantConfig, flowJobs: flows }, membership)
      if (batches) works.push(publishing(workOf('batch', batches, slots.plans)))
      const schedules = settings.hasPlanQueue ? schedulesOf(parts, settings.scheduleLeastSecs) : undefined
      if (schedules) {
        works.push(publishing(workOf('plan', createPlanJobs(settings, all, membership), slots.plans)))
        works.push(workOf('schedule', openTicks(parts), TICKS))
      }
      await executor.start(consume, works, membership)
      dispatcher?.start()
      stopSweeps = startSweeps(parts, membership, schedules && { schedules })
    },
    async close() {
      stopSweeps()
      await Promise.all([dispatcher?.close(), usage.close(), recorder.settled(), opened.close()])
    },
  }
}

/** Whether the folder of a plan is no longer needed. */
const planLook =
  ({ store }: OpenParts) =>
  async (tenant: TenantId, scope: string): Promise<boolean> => {
    const plan = await store.plans.get(tenant, planIdOf(scope))
    return plan === undefined || isEnded(plan)
  }

type Handlers = Pick<JobWork, 'handle' | 'givenUp'>

const workOf = (kind: JobWork['kind'], handlers: Handlers, slots: SlotLimits): JobWork => ({
  kind,
  slots,
  handle: (job, giveWay) => handlers.handle(job, giveWay),
  givenUp: (job) => handlers.givenUp(job),
})

/** The runs of flows, of plans, and of the items of batches, which have as many slots as plans have. */
const mostRuns = ({ flows, plans }: Record<'flows' | 'plans', SlotLimits>): number =>
  mostSlots(flows) + (1 + ITEMS_AT_ONCE) * mostSlots(plans)

type SlotSettings = Pick<ExecutorSettings, 'runsPerWorker' | 'runsPerTenant'>

/** A tenant has the same share of the plans as of the runs. */
function slotsOf({
  runsPerWorker: max,
  runsPerTenant: maxPerTenant,
}: SlotSettings): Record<'flows' | 'plans', SlotLimits> {
  const isShared = maxPerTenant < max
  const maxPlans = Math.max(isShared ? 2 : 1, Math.floor(max / STEPS_PER_PLAN))
  const plansPerTenant = isShared ? Math.max(1, Math.floor((maxPlans * maxPerTenant) / max)) : maxPlans
  return { flows: { max, maxPerTenant }, plans: { max: maxPlans, maxPerTenant: plansPerTenant } }
}

/** Sends the end of each flow and plan to the readers of the tenant's events and to its webhooks. */
function publisherOf({ tenantConfig, events, store, log }: OpenParts, executor: Executor): (work: JobWork) => JobWork {
  const { dispatches, plans } = store
  const deps = { events, outbox: tenantConfig?.outbox, dispatches, plans, draining: executor.draining, log }
  return (work) => ({
    ...work,
    handle: publishingEnds(work.handle, deps),
    givenUp: publishingEnds(work.givenUp, deps),
  })
}

function dispatcherOf({ tenantConfig, store, metrics, log }: OpenParts): WebhookDispatcher | undefined {
  if (!tenantConfig) return undefined
  const { configs, webhooks, egress } = tenantConfig
  const secretsOf = webhooks.secretsOf.bind(webhooks)
  return new WebhookDispatcher({ configs, secretsOf, store: store.deliveries, egress, metrics, log })
}

function schedulesOf({ store, schedules }: OpenParts, leastSecs: number): PlanSchedules {
  const { planSchedules, tickRecords: records, plans, files } = store
  return new PlanSchedules({ store: planSchedules, records, schedules, plans, files, now: () => new Date(), leastSecs })
}

/** The jobs of kind `schedule` are ticks. A tick whose executors died is not repeated: its plan is already stored, or the next tick follows. */
function openTicks({ store, tenantConfig, events, queue, schedules, metrics }: OpenParts): Handlers {
  const { plans, idempotency, planSchedules, tickRecords: records } = store
  const requests = tenantConfig?.limits.requests
  const admits = async (tenant: TenantId) => (await requests?.take(tenant))?.isAllowed ?? true
  const submission = { plans, idempotency, queue, events, now: () => new Date() }
  const ticks = new PlanTicks({ ...submission, store: planSchedules, records, schedules, admits, metrics })
  return { handle: (job: Job) => ticks.fire(job), givenUp: async () => {} }
}

type PlanParts = ExecutorParts & { executor: Executor; models: ModelSource }

/** Opens the jobs that execute plans, with the tools that need no permission. */
function createPlanJobs(
  { maxTurns }: Pick<Settings['executor'], 'maxTurns'>,
  parts: PlanParts,
  membership: Membership,
): PlanJobs {
  const { store, models, tools, workspaces, executor, fence, events, usage, recorder, metrics, log } = parts
  const reporter = new RunReporter({ log, metrics, usage, recorder })
  const live = executor.steps
  return new PlanJobs({
    ...membership,
    runs: executor.runs,
    draining: executor.draining,
    plans: store.plans,
    stepsOf: createPlanSteps({ models, tools, workspaces, files: store.files, maxTurns, reporter, live, log }),
    async removeFolder(tenant, planId) {
      const id = planRunId(planId)
      workspaces.openKept(tenant, id) // An earlier executor may have made it.
      await workspaces.remove(tenant, id)
    },
    leaveFolder: (tenant, planId) => workspaces.release(tenant, planRunId(planId)),
    isHeld: () => fence.isHeld(),
    events,
    metrics,
    log,
  })
}

type BatchSettings = Pick<Settings['executor'], 'hasDispatchStore'>
type BatchParts = ExecutorParts & { executor: Executor; tenantConfig: OpenedTenantConfig; flowJobs: FlowJobs }

/** Opens the jobs that run the items of batches, with the batch endpoints of the tenants' instances. */
function createBatchJobs(
  { hasDispatchStore: keepsHistory }: BatchSettings,
  { flows: parts, store, tenantConfig, executor, flowJobs: flows, tools, events, log }: BatchParts,
  membership: Pick<Membership, 'epoch' | 'executors'>,
): BatchJobs {
  const { configs, limits, outbox, openVendor } = tenantConfig
  const { batches, files, pooled } = store
  const now = () => new Date()
  const shared = { ...parts, batches, checkers: patientChecks(parts.schemas), flows, now, log }
  const pool = new CallPool({ store: pooled, now })
  return new BatchJobs({
    ...{ ...shared, files, configs, keepsHistory },
    waves: new BatchWaves({ ...shared, ...membership, pool, toolBox: tools.toolBox, openVendor }),
    admission: limits.admission,
    tell: tellingBatches({ events, outbox }),
    runs: executor.runs,
    draining: executor.draining,
  })
}
