import type { Log } from '../../shared/kernel/log.ts'
import type { Config } from '../../shared/platform/config/config.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import { openRedisLink, type RedisLink } from '../../shared/platform/redis/link.ts'
import { waitForRedis } from '../../shared/platform/redis/wait-for-redis.ts'

type LinkConfig = Pick<Config, 'redisUrl' | 'redisSentinels' | 'clusterName'>

/** Opens this process's connections to the Redis that the configuration names. Waits for one that is slow to answer. */
export function openLink(config: LinkConfig, log: Log): Promise<RedisLink> {
  const [url, options] = redisOf(config)
  return waitForRedis(() => openRedisLink(url, { ...options, warn: (message) => log.warn(message) }), { log })
}
