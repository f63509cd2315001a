import { createRedisMovedRuns } from '../../../shared/cluster/owners/redis-owners.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { movedRunsContract, RUN } from '../../contract/moved-runs.ts'
import { useOpened } from '../../support/fixture.ts'
import { useRedis } from '../../support/redis.ts'

describe('moved runs in Redis', () => {
  const redis = useRedis()
  const link = useOpened(() => openRedisLink(redis.url), { perTest: true })

  movedRunsContract(() => ({
    movedRuns: createRedisMovedRuns(link),
    secsLeft: () => redis.connect().ttl(`ae:moved:${RUN.tenant} ${RUN.id}`),
  }))
})
