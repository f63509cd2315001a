import { createRedisMembers } from '../../shared/cluster/members/redis-members.ts'
import type { RedisLink } from '../../shared/platform/redis/link.ts'
import type { OpsPages } from '../ops/open-ops.ts'

/** The sources of the ops listener's pages in a cluster. */
export function clusterPages(link: RedisLink): OpsPages {
  const members = createRedisMembers(link)
  return { members: () => members.list() }
}
