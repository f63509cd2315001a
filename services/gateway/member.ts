import { createRedisPorts } from '../../shared/cluster/redis-ports.ts'
import { GatewayRelay } from '../../shared/cluster/relay/gateway.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { createRedisIdempotency } from '../../shared/platform/redis/idempotency.ts'
import { waitForRedis } from '../../shared/platform/redis/wait-for-redis.ts'
import { RedisEventLog } from '../../shared/tenancy/events/redis-log.ts'
import { createBullQueue } from '../../shared/work/queue/bullmq.ts'
import { createBullSchedules } from '../../shared/work/queue/bullmq-schedules.ts'
import { openOps } from '../ops/open-ops.ts'
import { commonClosers } from '../wiring/closers.ts'
import { clusterChecks } from '../wiring/cluster-checks.ts'
import { clusterPages } from '../wiring/cluster-pages.ts'
import { createClusterParts } from '../wiring/config-notice.ts'
import { openLink } from '../wiring/open-link.ts'
import { openClusterStore } from '../wiring/open-store.ts'
import { openTenantConfig } from '../wiring/open-tenant-config.ts'
import { openTools } from '../wiring/open-tools.ts'
import { type Opened, ownProcess } from '../wiring/process.ts'
import { openRecordedBroker, openRunWitness } from '../wiring/run-records.ts'
import { createRunSource } from '../wiring/run-source.ts'
import { tenantsPage } from '../wiring/tenants-page.ts'
import { createFlowSurface } from './create-flow-surface.ts'
import { createPlanSurface } from './create-plan-surface.ts'
import { drainGateway } from './drain.ts'
import { openHttp } from './open-http.ts'

/** For each closer, beyond its share of DRAIN_SECS. */
const CLOSE_MS = 5_000

/** A gateway of the cluster. Its only state is its open streams. */
export async function openGatewayMember(settings: Settings, log: Log): Promise<Opened> {
  const { drainMs } = settings.process
  const ops = await openOps(settings.ops, { form: 'cluster', log })
  const { metrics, isHeapHigh } = ops
  const [redis, link] = [redisOf(settings.redis), await openLink(settings.redis, log)]
  ops.show(clusterPages(link))
  const store = await openClusterStore(settings.store, log)
  const [queue, schedules] = [ops.watchQueue(createBullQueue(...redis)), createBullSchedules(...redis)]
  const jobs = store && createRunSource(store, queue)
  const events = new RedisEventLog(link, log)
  const tenantConfig = await openTenantConfig(settings.tenants, { store, ...createClusterParts(link, log), events })
  const witness = store && openRunWitness({ store, tenantConfig, metrics, log })
  const onMemberLost = (epoch: number) => witness?.onWorkerLost(epoch)
  const own = { ...ownProcess.asMember(), log, metrics }
  const relay = new GatewayRelay(createRedisPorts(link), { ...own, jobs, onMemberLost })
  await waitForRedis(() => relay.join(), { log })
  const { toolBox, schemas, close: closeTools } = await openTools(settings.tools, log)
  ops.show(tenantsPage({ loads: (range) => relay.listTenants(range), store, tenantConfig }))
  const { broker, executors } = relay
  const flowParts = { store, events, toolBox, schemas, tenantConfig, queue, broker, executors, log }
  const plans = createPlanSurface(settings.plans, { store, queue, schedules, broker, events })
  const surfaces = { ...(await createFlowSurface(settings.flows, flowParts)), plans }
  const startKeys = createRedisIdempotency(link)
  const runs = openRecordedBroker(store, { broker, tenantConfig, witness })
  const httpParts = { form: 'cluster', broker: runs, startKeys, events, toolBox, store, link, log, metrics } as const
  const http = await openHttp(settings.http, { ...httpParts, isHeapHigh, tenantConfig, ...surfaces })
  const drain = () => drainGateway(drainMs, { relay, http })
  void relay.firstWorker.then(() => ops.ready(clusterChecks(() => relay.readiness(), link)))
  return {
    ready: { role: 'gateway', id: `gw_${relay.epoch}`, url: http.url, ops_url: ops.url },
    closers: [
      ops.drain,
      { name: 'streams', deadlineMs: drainMs + CLOSE_MS, close: drain },
      { name: 'membership', deadlineMs: CLOSE_MS, close: () => relay.stop() },
      { name: 'schedules', deadlineMs: CLOSE_MS, close: () => schedules.close() },
      { name: 'queue', deadlineMs: CLOSE_MS, close: () => queue.close() },
      ...commonClosers({ closeTools, tenantConfig, events, store, link, ops }),
    ],
  }
}
