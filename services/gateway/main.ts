import { joinAsGateway } from '../../shared/broker/redis.ts'
import { openRedisLink } from '../../shared/broker/redis-link.ts'
import { openHttp } from '../wiring/http.ts'
import { runProcess } from '../wiring/process.ts'
import { openTools } from '../wiring/tools.ts'

const CLOSE_MS = 5_000

/** A gateway of the cluster: holds no state but its open streams (design §1). */
await runProcess('cluster', async (config, log) => {
  const link = await openRedisLink(config.redisUrl ?? '')
  const relay = await joinAsGateway(link, process.pid, log)
  const { toolBox, close: closeTools } = await openTools(config, log)
  const http = await openHttp(config, { form: 'cluster', broker: relay.broker, toolBox, log })
  return {
    ready: { role: 'gateway', id: `gw_${relay.epoch()}`, url: http.url },
    closers: [
      { name: 'streams', deadlineMs: config.drainMs + CLOSE_MS, close: () => http.close(config.drainMs) },
      { name: 'membership', deadlineMs: CLOSE_MS, close: relay.stop },
      { name: 'tools', deadlineMs: CLOSE_MS, close: closeTools },
      { name: 'redis', deadlineMs: CLOSE_MS, close: link.close },
    ],
  }
})
