import type { RedisLink } from '../../shared/broker/redis-link.ts'
import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import { createMemoryRateLimiter } from '../../shared/rate/memory.ts'
import type { RateLimiter } from '../../shared/rate/port.ts'
import { createRedisRateLimiter } from '../../shared/rate/redis.ts'

type LimiterParts = {
  /** The Redis connection that the process already has, if any. */
  link: Pick<RedisLink, 'run'> | undefined
  log: Log
}

export type OpenedLimiter = { limiter: RateLimiter | undefined; close(): Promise<void> }

/**
 * Creates the limiter that RATE_LIMIT_RPM and RATE_LIMIT_STORE describe (D1.3). `close` closes the connection that it opened
 * for it.
 */
export async function openRateLimiter(config: Config, { link, log }: LimiterParts): Promise<OpenedLimiter> {
  const { rateLimitRpm: perMinute, rateLimitStore, redisUrl = '' } = config
  if (perMinute === 0) return { limiter: undefined, close: async () => {} }
  const memory = createMemoryRateLimiter({ perMinute })
  if (rateLimitStore === 'memory') return { limiter: memory, close: async () => {} }
  const limiterOn = ({ run }: Pick<RedisLink, 'run'>) =>
    createRedisRateLimiter({ run, perMinute, fallback: memory, log })
  if (link) return { limiter: limiterOn(link), close: async () => {} }
  const own = await openLink(redisUrl)
  return { limiter: limiterOn(own), close: own.close }
}

/** The standalone form uses Redis for the shared rate limit only, so it loads the client here. */
async function openLink(url: string): Promise<RedisLink> {
  const { openRedisLink } = await import('../../shared/broker/redis-link.ts')
  return openRedisLink(url)
}
