import { Lease } from '../../shared/cluster/members/lease.ts'
import { createRedisPorts } from '../../shared/cluster/redis-ports.ts'
import { ExecutorRelay } from '../../shared/cluster/relay/executor.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import { ConfigError } from '../../shared/platform/config/config.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { waitForRedis } from '../../shared/platform/redis/wait-for-redis.ts'
import { RedisEventLog } from '../../shared/tenancy/events/redis-log.ts'
import { createBullQueue } from '../../shared/work/queue/bullmq.ts'
import { createBullConsume } from '../../shared/work/queue/bullmq-consume.ts'
import { createBullSchedules } from '../../shared/work/queue/bullmq-schedules.ts'
import { openOps } from '../ops/open-ops.ts'
import { commonClosers } from '../wiring/closers.ts'
import { clusterChecks } from '../wiring/cluster-checks.ts'
import { clusterPages } from '../wiring/cluster-pages.ts'
import { createClusterParts } from '../wiring/config-notice.ts'
import { createFlows } from '../wiring/create-flows.ts'
import { openLink } from '../wiring/open-link.ts'
import { openClusterStore } from '../wiring/open-store.ts'
import { openTenantConfig } from '../wiring/open-tenant-config.ts'
import { openTools } from '../wiring/open-tools.ts'
import { type Opened, ownProcess } from '../wiring/process.ts'
import { openRunRecorder } from '../wiring/run-records.ts'
import type { Executor } from './executor.ts'
import { openExecutor } from './open-executor.ts'

const CLOSE_MS = 5_000

/** An executor of the cluster, which takes queued work and executes it (services/README.md). */
export async function openExecutorMember(settings: Settings, log: Log): Promise<Opened> {
  const { drainMs, runsPerWorker } = settings.process
  const ops = await openOps(settings.ops, { form: 'cluster', log })
  const { metrics, isHeapHigh } = ops
  const store = await openClusterStore(settings.store, log)
  if (!store) throw new ConfigError(['MONGODB_URL is missing: an executor needs the store of the cluster'])
  const [redis, lease, link] = [redisOf(settings.redis), new Lease(), await openLink(settings.redis, log)]
  ops.show(clusterPages(link))
  const events = new RedisEventLog(link, log)
  const tenantConfig = await openTenantConfig(settings.tenants, { store, ...createClusterParts(link, log), events })
  const { toolBox, schemas, close: closeTools } = await openTools(settings.tools, log)
  const flows = createFlows({ store, events, toolBox, schemas, configs: tenantConfig?.configs })
  const [queue, schedules] = [ops.watchQueue(createBullQueue(...redis)), createBullSchedules(...redis)]
  const recorder = openRunRecorder({ store, tenantConfig, metrics, log }, () => relay.epoch)
  const parts = { flows, store, events, recorder, tenantConfig, toolBox, queue, schedules, isHeapHigh, metrics, log }
  const opened = await openExecutor(settings.executor, { ...parts, fence: lease })
  const own = { ...ownProcess.asMember(runsPerWorker), lease, log, metrics }
  const relay = new ExecutorRelay(createRedisPorts(link), opened.executor, own)
  showRuns(metrics, opened.executor, runsPerWorker)
  await waitForRedis(() => relay.join(), { log })
  await opened.start(createBullConsume({ url: redis[0], redis: redis[1], onProblem: problemsTo(log) }), {
    epoch: () => relay.epoch,
    announce: (runId) => relay.announceStart(runId),
    executors: relay.executors,
    isMember: (epoch) => relay.isMember(epoch),
  })
  ops.ready(clusterChecks(() => relay.readiness(), link))
  return {
    ready: { role: 'executor', id: `ex_${relay.epoch}`, ops_url: ops.url },
    closers: [
      ops.drain,
      { name: 'jobs', deadlineMs: drainMs + CLOSE_MS, close: () => relay.drain(drainMs) },
      { name: 'membership', deadlineMs: CLOSE_MS, close: () => relay.stop() },
      { name: 'sweeps, webhooks, usage and records', deadlineMs: CLOSE_MS, close: () => opened.close() },
      { name: 'schedules', deadlineMs: CLOSE_MS, close: () => schedules.close() },
      { name: 'queue', deadlineMs: CLOSE_MS, close: () => queue.close() },
      ...commonClosers({ closeTools, tenantConfig, events, store, link, ops }),
    ],
  }
}

function showRuns(metrics: Metrics, { runs }: Executor, runsPerWorker: number): void {
  metrics.gauge('runs', () => runs.countByStatus())
  metrics.gauge('runs_limit', () => runsPerWorker)
}

const problemsTo = (log: Log) => (message: string, cause: unknown) => log.warn(message, { cause })
