import type { RedisClient } from '../../../shared/platform/redis/connect.ts'

/** The epochs and process ids of the cluster's members, as Redis holds them. */
export async function readMembers(redis: RedisClient): Promise<{ epoch: number; pid: number }[]> {
  const entries = await redis.hgetall('ae:{members}')
  return Object.entries(entries).map(([epoch, text]) => {
    const { pid } = JSON.parse(text.slice(text.indexOf(' '))) as { pid: number }
    return { epoch: Number(epoch), pid }
  })
}
