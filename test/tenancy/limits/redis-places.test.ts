import { openRedisLink, type RedisLink } from '../../../shared/platform/redis/link.ts'
import { createRedisRunPlaces } from '../../../shared/tenancy/limits/redis-places.ts'
import { placesContract } from '../../contract/run-places.ts'
import { useRedis } from '../../support/redis.ts'

describe('the places of concurrent runs in Redis', () => {
  const redis = useRedis()
  let link: RedisLink
  before(async () => {
    link = await openRedisLink(redis.url)
  })
  after(() => link.close())

  placesContract(() => createRedisRunPlaces(link.run))
})
