import { createServer } from '../../../../services/http/server.ts'
import { createRedisPorts } from '../../../../shared/cluster/redis-ports.ts'
import { GatewayRelay } from '../../../../shared/cluster/relay/gateway/gateway.ts'
import { createLog } from '../../../../shared/kernel/log.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { openRedisLink } from '../../../../shared/platform/redis/link.ts'
import { LoopDelay } from '../loop-delay.ts'
import { answerCalls, readOptions } from './answer.ts'
import { appOn } from './app.ts'

/** The product's gateway. */
const { redisUrl, keepaliveMs } = readOptions()
const relay = new GatewayRelay(createRedisPorts(await openRedisLink(redisUrl)), {
  pid: process.pid,
  log: createLog({ level: 'error' }),
  metrics: NO_METRICS,
})
await relay.join()
const { port } = await createServer(appOn(relay.broker, keepaliveMs)).listen(0, '127.0.0.1')
const delay = new LoopDelay()
answerCalls({ port }, { watchLoop: () => delay.start(), maxLoopDelayMs: () => delay.maxMs() })
