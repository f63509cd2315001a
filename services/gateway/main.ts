import { openRedisLink } from '../../shared/broker/redis-link.ts'
import { GatewayRelay } from '../../shared/broker/relay/redis-gateway.ts'
import { openOps } from '../ops/open-ops.ts'
import { createRedisConfigBell } from '../wiring/config-bell.ts'
import { runProcess } from '../wiring/process.ts'
import { openStore } from '../wiring/store.ts'
import { openTenantConfig } from '../wiring/tenant-config.ts'
import { openTools } from '../wiring/tools.ts'
import { drainGateway } from './drain.ts'
import { openHttp } from './open-http.ts'

/** For each closer, beyond its share of DRAIN_SECS. */
const CLOSE_MS = 5_000

/** A gateway of the cluster. Its only state is its open streams. */
await runProcess('cluster', async (config, log) => {
  const ops = await openOps(config, { form: 'cluster', log })
  const { metrics } = ops
  const link = await openRedisLink(config.redisUrl ?? '')
  const relay = new GatewayRelay(link, { pid: process.pid, log, metrics })
  await relay.join()
  const { toolBox, close: closeTools } = await openTools(config, log)
  const store = await openStore(config, 'cluster', log)
  const tenantConfig = await openTenantConfig(config, { store, bell: createRedisConfigBell(link), log })
  const http = await openHttp(config, {
    form: 'cluster',
    broker: relay.broker,
    tools: toolBox.tools,
    ledger: store?.ledger,
    tenantConfig,
    link,
    log,
    metrics,
  })
  ops.ready({ redis: () => !relay.readiness().isRedisAway })
  return {
    ready: { role: 'gateway', id: `gw_${relay.epoch}`, url: http.url, ops_url: ops.url },
    closers: [
      ops.drain,
      {
        name: 'streams',
        deadlineMs: config.drainMs + CLOSE_MS,
        close: () => drainGateway(config.drainMs, { relay, http }),
      },
      { name: 'membership', deadlineMs: CLOSE_MS, close: () => relay.stop() },
      { name: 'tools', deadlineMs: CLOSE_MS, close: closeTools },
      { name: 'tenant configuration', deadlineMs: CLOSE_MS, close: async () => tenantConfig?.close() },
      { name: 'store', deadlineMs: CLOSE_MS, close: async () => store?.close() },
      { name: 'redis', deadlineMs: CLOSE_MS, close: link.close },
      ops.close,
    ],
  }
})
