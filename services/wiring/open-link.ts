import type { Log } from '../../shared/kernel/log.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { openRedisLink, type RedisLink } from '../../shared/platform/redis/link.ts'
import { waitForRedis } from '../../shared/platform/redis/wait-for-redis.ts'

/** Opens this process's connections to the Redis that the configuration names. Waits for one that is slow to answer. */
export function openLink(settings: Settings['redis'], log: Log): Promise<RedisLink> {
  const [url, options] = redisOf(settings)
  return waitForRedis(() => openRedisLink(url, { ...options, warn: (message) => log.warn(message) }), { log })
}
