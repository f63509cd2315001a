import { createRedisMembers } from '../../shared/cluster/members/redis-members.ts'
import { openRedisLink } from '../../shared/platform/redis/link.ts'
import type { Member } from './member.ts'

/** Removes a process that has died from the members of the cluster. This is announced to the others, so they need not wait until its lease runs out. */
export async function leaveCluster(redis: Parameters<typeof openRedisLink>, { id }: Pick<Member, 'id'>): Promise<void> {
  const link = await openRedisLink(...redis)
  try {
    await createRedisMembers(link).leave(Number(id.slice(id.indexOf('_') + 1)))
  } finally {
    await link.close()
  }
}
