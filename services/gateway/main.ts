import { openRedisLink } from '../../shared/broker/redis-link.ts'
import { joinAsGateway } from '../../shared/broker/relay/redis.ts'
import { openOps } from '../ops/open-ops.ts'
import { runProcess } from '../wiring/process.ts'
import { openStore } from '../wiring/store.ts'
import { openTools } from '../wiring/tools.ts'
import { drainGateway } from './drain.ts'
import { openHttp } from './open-http.ts'

const CLOSE_MS = 5_000

/** A gateway of the cluster: holds no state but its open streams (design §1). */
await runProcess('cluster', async (config, log) => {
  const ops = await openOps(config, { form: 'cluster', log })
  const { metrics } = ops
  const link = await openRedisLink(config.redisUrl ?? '')
  const relay = await joinAsGateway(link, { pid: process.pid, log, metrics })
  const { toolBox, close: closeTools } = await openTools(config, log)
  const store = await openStore(config, 'cluster', log)
  const http = await openHttp(config, {
    form: 'cluster',
    broker: relay.broker,
    toolBox,
    ledger: store?.ledger,
    link,
    log,
    metrics,
  })
  ops.ready({ redis: () => !relay.readiness().isRedisAway })
  return {
    ready: { role: 'gateway', id: `gw_${relay.epoch()}`, url: http.url, ops_url: ops.url },
    closers: [
      ops.drain,
      {
        name: 'streams',
        deadlineMs: config.drainMs + CLOSE_MS,
        close: () => drainGateway(config.drainMs, { relay, http }),
      },
      { name: 'membership', deadlineMs: CLOSE_MS, close: relay.stop },
      { name: 'tools', deadlineMs: CLOSE_MS, close: closeTools },
      { name: 'store', deadlineMs: CLOSE_MS, close: async () => store?.close() },
      { name: 'redis', deadlineMs: CLOSE_MS, close: link.close },
      ops.close,
    ],
  }
})
