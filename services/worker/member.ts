import { Lease } from '../../shared/cluster/members/lease.ts'
import { openWorkerPermissionStore } from '../../shared/cluster/permissions/redis-store.ts'
import { createRedisPorts } from '../../shared/cluster/redis-ports.ts'
import { WorkerRelay } from '../../shared/cluster/relay/worker.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { waitForRedis } from '../../shared/platform/redis/wait-for-redis.ts'
import { RedisEventLog } from '../../shared/tenancy/events/redis-log.ts'
import { createBullQueue } from '../../shared/work/queue/bullmq.ts'
import { openOps } from '../ops/open-ops.ts'
import { commonClosers } from '../wiring/closers.ts'
import { clusterChecks } from '../wiring/cluster-checks.ts'
import { clusterPages } from '../wiring/cluster-pages.ts'
import { createClusterParts } from '../wiring/config-notice.ts'
import { openLink } from '../wiring/open-link.ts'
import { openClusterStore } from '../wiring/open-store.ts'
import { openTenantConfig } from '../wiring/open-tenant-config.ts'
import { createPlanQueue } from '../wiring/plan-queue.ts'
import { type Opened, ownProcess } from '../wiring/process.ts'
import { openRunRecorder } from '../wiring/run-records.ts'
import { openWorker } from './open-worker.ts'
import type { Session } from './sessions/session.ts'

const CLOSE_MS = 5_000

/** A worker of the cluster, which owns sessions and runs and hosts the engine (services/README.md). */
export async function openWorkerMember(settings: Settings, log: Log): Promise<Opened> {
  const { drainMs, runsPerWorker } = settings.process
  const ops = await openOps(settings.ops, { form: 'cluster', log })
  const { metrics, isHeapHigh } = ops
  const lease = new Lease()
  const redis = redisOf(settings.redis)
  const link = await openLink(settings.redis, log)
  ops.show(clusterPages(link))
  const events = new RedisEventLog(link, log)
  const permissions = await waitForRedis(() => openWorkerPermissionStore(link, ownProcess.pid), { log })
  const store = await openClusterStore(settings.store, log)
  // The relay exists before it joins the cluster, so before there are sessions.
  const onSessionRemoved = (session: Session) => relay.releaseClaim(session)
  const tenantConfig = await openTenantConfig(settings.tenants, { store, ...createClusterParts(link, log), events })
  const queue = ops.watchQueue(createBullQueue(...redis))
  const planQueue = createPlanQueue(settings.plans, store, { queue, events })
  const recorder = store && openRunRecorder({ store, tenantConfig, metrics, log }, () => relay.epoch)
  const parts = { permissions, fence: lease, isHeapHigh, store, metrics, tenantConfig, events, planQueue, recorder }
  const { worker, settled, close: closeTools } = await openWorker(settings.worker, log, { ...parts, onSessionRemoved })
  const own = { ...ownProcess.asMember(runsPerWorker), lease, log, metrics }
  const relay: WorkerRelay<Session> = new WorkerRelay(createRedisPorts(link), worker, own)
  await waitForRedis(() => relay.join(), { log })
  ops.ready(clusterChecks(() => relay.readiness(), link))
  return {
    ready: { role: 'worker', id: `wk_${relay.epoch}`, ops_url: ops.url },
    closers: [
      ops.drain,
      { name: 'runs', deadlineMs: drainMs + CLOSE_MS, close: () => relay.drain(drainMs) },
      { name: 'webhooks and usage', deadlineMs: CLOSE_MS, close: settled },
      { name: 'records of runs', deadlineMs: CLOSE_MS, close: async () => recorder?.settled() },
      { name: 'membership', deadlineMs: CLOSE_MS, close: () => relay.stop() },
      { name: 'queue', deadlineMs: CLOSE_MS, close: () => queue.close() },
      ...commonClosers({ closeTools, tenantConfig, events, store, link, ops }),
    ],
  }
}
