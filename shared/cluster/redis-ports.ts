import type { RedisLink } from '../platform/redis/link.ts'
import { createRedisMembers } from './members/redis-members.ts'
import { createRedisMovedRuns, createRedisOwners } from './owners/redis-owners.ts'
import { createRedisPermissionStore } from './permissions/redis-store.ts'
import type { ClusterPorts } from './relay/member.ts'

/** The ports over Redis, whose pub/sub is the bus. */
export const createRedisPorts = (link: RedisLink): ClusterPorts => ({
  bus: link,
  members: createRedisMembers(link),
  owners: createRedisOwners(link),
  movedRuns: createRedisMovedRuns(link),
  permissions: createRedisPermissionStore(link),
})
