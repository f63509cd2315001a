import { createRedisOwners } from '../../../shared/cluster/owners/redis-owners.ts'
import { openRedisLink, type RedisLink } from '../../../shared/platform/redis/link.ts'
import { ownersContract, S1 } from '../../contract/owners.ts'
import { useRedis } from '../../support/redis.ts'

describe('owners in Redis', () => {
  const redis = useRedis()
  let link: RedisLink
  beforeEach(async () => {
    link = await openRedisLink(redis.url)
  })
  afterEach(() => link.close())

  ownersContract(() => ({
    owners: createRedisOwners(link),
    secsLeft: () => redis.connect().ttl(`ae:session:${S1.tenant} ${S1.id}`),
  }))
})
