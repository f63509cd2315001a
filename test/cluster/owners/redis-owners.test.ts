import { createRedisOwners } from '../../../shared/cluster/owners/redis-owners.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { ownersContract, S1 } from '../../contract/owners.ts'
import { useOpened } from '../../support/fixture.ts'
import { useRedis } from '../../support/redis.ts'

describe('owners in Redis', () => {
  const redis = useRedis()
  const link = useOpened(() => openRedisLink(redis.url), { perTest: true })

  ownersContract(() => ({
    owners: createRedisOwners(link),
    secsLeft: () => redis.connect().ttl(`ae:session:${S1.tenant} ${S1.id}`),
  }))
})
