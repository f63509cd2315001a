import type { RedisLink } from '../../shared/platform/redis/link.ts'
import type { Checks } from '../ops/readiness.ts'

type Readiness = { isRedisAway: boolean; isMember: boolean }

/**
 * The readiness checks of every process of the cluster. Without Redis, or while it has no memory for writes, no process can renew its
 * lease, so that alone is reported.
 */
export const clusterChecks = (readiness: () => Readiness, { isFull }: Pick<RedisLink, 'isFull'>): Checks => ({
  redis: () => !readiness().isRedisAway,
  redis_memory: () => !isFull(),
  membership: () => readiness().isRedisAway || isFull() || readiness().isMember,
})
