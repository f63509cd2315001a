import { PoolDriver } from '../../shared/agent/providers/batch/pool/driver.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { createAges } from '../../shared/work/flows/calls/end-lost-execution.ts'
import { sweepOrphans } from '../../shared/work/flows/calls/orphan-sweep.ts'
import { createRetentionSweep } from '../../shared/work/flows/retention-sweep.ts'
import { reconcilePlans } from '../../shared/work/plans/reconcile.ts'
import type { PlanSchedules } from '../../shared/work/plans/schedules.ts'
import { createAbsence } from '../../shared/work/runs/records/lost-runs.ts'
import { recordLost } from '../wiring/run-records.ts'
import { queueAnswered, reconcileBatches } from './batch-jobs.ts'
import { tellingBatches } from './job-ends.ts'
import type { ExecutorParts, Membership } from './open-parts.ts'

type Parts = Pick<ExecutorParts, 'flows' | 'store' | 'tenantConfig' | 'events' | 'queue' | 'fence' | 'log'>
type PlanParts = { schedules: Pick<PlanSchedules, 'restore'> }

const SWEEP_EVERY_MS = 600_000
const ORPHANS_EVERY_MS = 15_000
const LOST_EVERY_MS = 15_000
/** How long a process must be absent before its runs count as lost: longer than the gateways need to record the events that they got from it. */
const LOST_AFTER_MS = 30_000
const RECONCILE_EVERY_MS = 10_000
const POOLS_EVERY_MS = 2_000
const RESTORE_EVERY_MS = 60_000

/** Starts the periodic work of every executor. Several executors may do it at the same time. Returns the function that ends it. */
export function startSweeps(parts: Parts, membership: Membership, plans: PlanParts | undefined): () => void {
  const stops = [
    startBatchReconciler(parts),
    startPools(parts),
    startRetentionSweep(parts),
    startFileSweep(parts),
    startOrphanSweep(parts, membership),
    startLostSweep(parts, membership),
  ]
  if (plans) stops.push(startReconciler(parts, membership), startScheduleSweep(parts, plans))
  return () => {
    for (const stop of stops) stop()
  }
}

/** Queues the plans whose jobs were lost: at start, and every 10 s. */
function startReconciler({ store, queue, fence, log }: Parts, { executors }: Membership): () => void {
  const reconcile = async () => {
    if (!fence.isHeld()) return
    await reconcilePlans({ plans: store.plans, queue, isAlive: (epoch) => executors.isAlive(epoch) })
  }
  const onFailure = (cause: unknown) => log.warn('lost plans could not be queued; it is tried again', { cause })
  return repeat(reconcile, { everyMs: RECONCILE_EVERY_MS, isAtOnce: true, onFailure })
}

/** The same for the items of batches. */
function startBatchReconciler({ store: { batches }, tenantConfig, events, queue, fence, log }: Parts): () => void {
  const tell = tellingBatches({ events, outbox: tenantConfig?.outbox })
  const reconcile = async () => {
    if (fence.isHeld()) await reconcileBatches({ batches, queue, tell, now: () => new Date() })
  }
  const onFailure = (cause: unknown) => log.warn('lost batches could not be queued; it is tried again', { cause })
  return repeat(reconcile, { everyMs: RECONCILE_EVERY_MS, isAtOnce: true, onFailure })
}

/** Takes the calls that wait for vendors' batches to them (D58). */
function startPools({ store: { pooled }, tenantConfig, queue, fence, log }: Parts): () => void {
  if (!tenantConfig) return () => {}
  const { openVendor, limits } = tenantConfig
  const onAnswered = queueAnswered(queue)
  const deps = { openVendor, assertBudget: limits.assertBudget, onAnswered, now: () => new Date(), log }
  const driver = new PoolDriver({ store: pooled, ...deps })
  const look = async () => {
    if (fence.isHeld()) await driver.look()
  }
  const onFailure = (cause: unknown) => log.warn('calls could not be sent to batches; it is tried again', { cause })
  return repeat(look, { everyMs: POOLS_EVERY_MS, onFailure })
}

/** Sends all schedules to the queue: at start, and every minute. */
function startScheduleSweep({ fence, log }: Parts, { schedules }: PlanParts): () => void {
  const restore = async () => {
    if (fence.isHeld()) await schedules.restore()
  }
  const onFailure = (cause: unknown) =>
    log.warn('the queue could not be told of schedules; it is tried again', { cause })
  return repeat(restore, { everyMs: RESTORE_EVERY_MS, isAtOnce: true, onFailure })
}

/** Deletes the records that tenants want to keep no longer. */
function startRetentionSweep({ flows, store, log }: Parts): () => void {
  const sweep = createRetentionSweep({
    dispatches: flows.dispatches,
    tenants: (after) => store.tenantConfigs.tenants(after),
    retentionDays: (tenant) => flows.retentionDays(tenant),
  })
  const onFailure = (cause: unknown) => log.warn('old dispatches could not be deleted; it is tried again', { cause })
  return repeat(() => sweep.run(), { everyMs: SWEEP_EVERY_MS, onFailure })
}

/** Deletes the files that have expired (D43.3). */
function startFileSweep({ store, log }: Parts): () => void {
  const onFailure = (cause: unknown) => log.warn('expired files could not be deleted; it is tried again', { cause })
  return repeat(() => store.files.sweep(), { everyMs: SWEEP_EVERY_MS, onFailure })
}

/** Ends the executions that no other process will end, and queues lost executions that have a deadline. */
function startOrphanSweep({ flows, store, queue, fence, log }: Parts, { executors }: Membership): () => void {
  const deps = {
    dispatches: flows.dispatches,
    tenants: (after: TenantId | undefined) => store.tenantConfigs.tenants(after),
    executors,
    queue,
    knownMs: createAges(),
    now: () => new Date(),
  }
  const sweep = async () => {
    if (fence.isHeld()) await sweepOrphans(deps)
  }
  const onFailure = (cause: unknown) => log.warn('lost executions could not be ended; it is tried again', { cause })
  return repeat(sweep, { everyMs: ORPHANS_EVERY_MS, onFailure })
}

/** Records the runs of processes that have died. */
function startLostSweep({ store, tenantConfig, fence, log }: Parts, { isMember }: Membership): () => void {
  const isGone = createAbsence((owner) => isMember(Number(owner)), LOST_AFTER_MS)
  const sweep = async () => {
    if (fence.isHeld()) await recordLost({ store, tenantConfig }, isGone)
  }
  const onFailure = (cause: unknown) => log.warn('lost runs could not be recorded; it is tried again', { cause })
  return repeat(sweep, { everyMs: LOST_EVERY_MS, onFailure })
}

type Repeating = { everyMs: number; isAtOnce?: boolean; onFailure(cause: unknown): void }

/** Calls `work` at intervals; with `isAtOnce` also immediately. No call begins while an earlier one still runs. */
function repeat(work: () => Promise<unknown>, { everyMs, isAtOnce = false, onFailure }: Repeating): () => void {
  let isBusy = false
  const once = async () => {
    if (isBusy) return
    isBusy = true
    await work().catch(onFailure)
    isBusy = false
  }
  if (isAtOnce) void once()
  const timer = setInterval(() => void once(), everyMs).unref()
  return () => clearInterval(timer)
}
