import type { Worker } from '../../services/worker/worker.ts'
import { Lease } from '../../shared/broker/lease.ts'
import { joinAsGateway, joinAsWorker, openWorkerBook } from '../../shared/broker/redis.ts'
import { openRedisLink, type RedisLink } from '../../shared/broker/redis-link.ts'
import { createLog } from '../../shared/log.ts'
import { NO_METRICS } from '../../shared/metrics.ts'
import { brokerContract } from '../contract/broker.ts'
import { createDemoWorker } from '../support/demo-worker.ts'
import { useRedis } from '../support/redis.ts'

const log = createLog({ level: 'error', write: () => {} })

describe('the broker over Redis', () => {
  const redis = useRedis({ keeps: true })

  brokerContract(async () => {
    const links: RedisLink[] = []
    const stops: (() => Promise<void>)[] = []
    const connect = async () => {
      const link = await openRedisLink(redis.url)
      links.push(link)
      return link
    }
    for (let i = 1; i <= 2; i++) {
      const link = await connect()
      const worker: Worker = createDemoWorker(await openWorkerBook(link, i))
      const relay = await joinAsWorker(link, worker, { pid: i, lease: new Lease(), log, metrics: NO_METRICS })
      stops.push(relay.stop, () => worker.drain(0))
    }
    const gateways = [
      await joinAsGateway(await connect(), { pid: 3, log, metrics: NO_METRICS }),
      await joinAsGateway(await connect(), { pid: 4, log, metrics: NO_METRICS }),
    ] as const
    for (const gateway of gateways) stops.push(gateway.stop)
    return {
      brokers: [gateways[0].broker, gateways[1].broker],
      async close() {
        for (const stop of stops) await stop()
        for (const link of links) await link.close()
      },
    }
  })
})
