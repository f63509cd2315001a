import { openRedisLink, type RedisLink } from '../../shared/broker/redis-link.ts'
import { waitForRedis } from '../../shared/broker/wait-for-redis.ts'
import type { Config } from '../../shared/config/config.ts'
import { redisOf } from '../../shared/config/redis-place.ts'
import type { Log } from '../../shared/log.ts'

type LinkConfig = Pick<Config, 'redisUrl' | 'redisSentinels' | 'clusterName'>

/** Opens this process's connections to the Redis that the configuration names. Waits for one that is slow to answer. */
export function openLink(config: LinkConfig, log: Log): Promise<RedisLink> {
  const [url, options] = redisOf(config)
  return waitForRedis(() => openRedisLink(url, { ...options, warn: (message) => log.warn(message) }), { log })
}
