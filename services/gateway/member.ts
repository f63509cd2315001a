import type { SessionKey } from '../../shared/cluster/owners/owners.ts'
import { createRedisPorts } from '../../shared/cluster/redis-ports.ts'
import { GatewayRelay } from '../../shared/cluster/relay/gateway/gateway.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { createRedisIdempotency } from '../../shared/platform/redis/idempotency.ts'
import { createBullSchedules } from '../../shared/work/queue/bullmq-schedules.ts'
import { openClusterProcess } from '../wiring/cluster-process.ts'
import { openClusterStore } from '../wiring/open-store.ts'
import { openTools } from '../wiring/open-tools.ts'
import { type Opened, ownProcess } from '../wiring/process.ts'
import { createRunSources, openRecordedBroker, openRunWitness } from '../wiring/run-records.ts'
import { tenantsPage } from '../wiring/tenants-page.ts'
import { createFlowSurface } from './create-flow-surface.ts'
import { createPlanSurface } from './create-plan-surface.ts'
import { drainGateway } from './drain.ts'
import { openHttp } from './open-http.ts'

/** A gateway of the cluster. Its only state is its open streams. */
export function openGatewayMember(settings: Settings, log: Log): Promise<Opened> {
  const { drainMs } = settings.process
  const opening = { role: 'gateway', settings, log, openStore: openClusterStore } as const
  return openClusterProcess(opening, async ({ join, closer, show, isHeapHigh, ...common }) => {
    const { store, events, link, tenantConfig, queue, metrics } = common
    const schedules = createBullSchedules(...redisOf(settings.redis))
    const jobs = store && createRunSources(store, queue)
    const witness = store && openRunWitness({ store, tenantConfig, metrics, log })
    const onMemberLost = (epoch: number) => witness?.onWorkerLost(epoch)
    const sessions = store?.sessions
    const isStored = sessions && (({ tenant, id }: SessionKey) => sessions.isLeft(tenant, id))
    const own = { ...ownProcess.asMember(), log, metrics }
    const busySessions = store?.busySessions
    const relay = new GatewayRelay(createRedisPorts(link), { ...own, jobs, isStored, busySessions, onMemberLost })
    await join(relay)
    const { toolBox, schemas, close: closeTools } = await openTools(settings.tools, log, store)
    show(tenantsPage({ loads: (range) => relay.listTenants(range), store, tenantConfig }))
    const { broker, executors } = relay
    const flowParts = { store, events, toolBox, schemas, tenantConfig, queue, broker, executors, log }
    const plans = createPlanSurface(settings, { ...flowParts, schedules })
    const flows = await createFlowSurface(settings.flows, flowParts)
    const queued = flows && { ...flows, plans }
    const startKeys = createRedisIdempotency(link)
    const runs = openRecordedBroker(store, { broker, tenantConfig, witness })
    const httpParts = { form: 'cluster', broker: runs, startKeys, events, toolBox, store, link, log, metrics } as const
    const http = await openHttp(settings.http, { ...httpParts, isHeapHigh, tenantConfig, queued })
    return {
      relay,
      url: http.url,
      work: [closer('streams', () => drainGateway(drainMs, { relay, http, witness }), drainMs)],
      rest: [closer('schedules', () => schedules.close())],
      closeTools,
      whenReady: relay.firstWorker,
    }
  })
}
