import { createRedisMovedRuns } from '../../../shared/cluster/owners/redis-owners.ts'
import { openRedisLink, type RedisLink } from '../../../shared/platform/redis/link.ts'
import { movedRunsContract, RUN } from '../../contract/moved-runs.ts'
import { useRedis } from '../../support/redis.ts'

describe('moved runs in Redis', () => {
  const redis = useRedis()
  let link: RedisLink
  beforeEach(async () => {
    link = await openRedisLink(redis.url)
  })
  afterEach(() => link.close())

  movedRunsContract(() => ({
    movedRuns: createRedisMovedRuns(link),
    secsLeft: () => redis.connect().ttl(`ae:moved:${RUN.tenant} ${RUN.id}`),
  }))
})
