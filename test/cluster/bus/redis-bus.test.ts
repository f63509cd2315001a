import type { Bus } from '../../../shared/cluster/bus/bus.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { busContract } from '../../contract/bus.ts'
import { useRedis } from '../../support/redis.ts'

describe('bus over Redis', () => {
  const redis = useRedis()
  const buses: Bus[] = []
  afterEach(async () => {
    for (const bus of buses.splice(0)) await bus.close()
  })

  busContract({
    async connect() {
      const bus: Bus = await openRedisLink(redis.url)
      buses.push(bus)
      return bus
    },
    cut: () => redis.server.kill('SIGKILL'),
    mend: () => redis.server.restart(),
  })
})
