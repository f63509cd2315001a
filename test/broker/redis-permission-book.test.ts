import { openRedisLink, type RedisLink } from '../../shared/broker/redis-link.ts'
import { createRedisPermissionBook } from '../../shared/broker/redis-permission-book.ts'
import { permissionBookContract } from '../contract/permission-book.ts'
import { useRedis } from '../support/redis.ts'

describe('permission book in Redis', () => {
  const redis = useRedis()
  const links: RedisLink[] = []
  afterEach(async () => {
    for (const link of links.splice(0)) await link.close()
  })

  permissionBookContract(async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    return createRedisPermissionBook(link, 'ae:bell:test')
  })
})
