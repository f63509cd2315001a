import type { Log } from '../../shared/kernel/log.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import { MemoryRateLimiter } from '../../shared/tenancy/rate/memory.ts'
import type { RateLimiter } from '../../shared/tenancy/rate/port.ts'
import { RedisRateLimiter } from '../../shared/tenancy/rate/redis.ts'

type LimiterParts = {
  /** The Redis connection that the process already has, if any. */
  link: Pick<RedisLink, 'run'> | undefined
  log: Log
}

export type OpenedLimiters = {
  limiter: RateLimiter | undefined
  /** `undefined` without OIDC: all requests have the same tenant then. */
  tenantLimiter: RateLimiter | undefined
  close(): Promise<void>
}

/**
 * Creates the limiters that RATE_LIMIT_RPM and RATE_LIMIT_STORE describe (D1.3). `close` closes the connection that it opened
 * for them.
 */
export async function openRateLimiters(
  { rateLimitRpm: perMinute, rateLimitStore, oidcIssuer, redis }: Settings['http']['rateLimits'],
  { link, log }: LimiterParts,
): Promise<OpenedLimiters> {
  if (perMinute === 0) return { limiter: undefined, tenantLimiter: undefined, close: async () => {} }
  const own = rateLimitStore === 'redis' && !link ? await openLink(redis) : undefined
  const shared = rateLimitStore === 'redis' ? (link ?? own) : undefined
  const create = () => {
    const memory = new MemoryRateLimiter({ perMinute })
    return shared ? new RedisRateLimiter({ run: shared.run, perMinute, fallback: memory, log }) : memory
  }
  const tenantLimiter = oidcIssuer === undefined ? undefined : create()
  return { limiter: create(), tenantLimiter, close: async () => own?.close() }
}

/** The standalone form uses Redis for the shared rate limit only, so it loads the client here. */
async function openLink(settings: Settings['redis']): Promise<RedisLink> {
  const { openRedisLink } = await import('../../shared/platform/redis/link.ts')
  return openRedisLink(...redisOf(settings))
}
