import type { MemberReadiness } from '../../shared/cluster/relay/membership.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import type { Checks } from '../ops/readiness.ts'

/**
 * The readiness checks of every process of the cluster. Without Redis, or while it has no memory for writes, no process can renew its
 * lease, so that alone is reported.
 */
export const clusterChecks = (
  readiness: () => Pick<MemberReadiness, 'isBusAway' | 'isMember'>,
  { isFull }: Pick<RedisLink, 'isFull'>,
): Checks => ({
  redis: () => !readiness().isBusAway,
  redis_memory: () => !isFull(),
  membership: () => readiness().isBusAway || isFull() || readiness().isMember,
})
