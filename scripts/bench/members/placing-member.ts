import { setImmediate } from 'node:timers/promises'
import { Lease } from '../../../shared/cluster/members/lease.ts'
import { createRedisMembers } from '../../../shared/cluster/members/redis-members.ts'
import { Workers } from '../../../shared/cluster/members/workers.ts'
import { Membership } from '../../../shared/cluster/relay/membership.ts'
import { Transport } from '../../../shared/cluster/relay/wire/transport.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { waitForRedis } from '../../../shared/platform/redis/wait-for-redis.ts'
import { LoopDelay } from '../relay/loop-delay.ts'

/**
 * A gateway of which only the placement is real: it looks an owner up after each change, so that it builds the ring. `changesMs`: for how
 * long each change of the members has blocked it. `joinMs`: the longest delay of its event loop from before it joined until the ring was
 * built. `emptyMs`: the same of as long a time of empty turns, in which only other processes delay it.
 */
export type PlacingMember = {
  workers: Workers
  delay: LoopDelay
  changesMs: number[]
  joinMs: number
  emptyMs: number
}

export async function joinPlacing(url: string): Promise<PlacingMember> {
  const link = await openRedisLink(url)
  const [lease, log] = [new Lease(), createLog({ level: 'error' })]
  const workers = new Workers()
  const changesMs: number[] = []
  let isPrepared = false
  const transport = new Transport(
    { role: 'gateway', bus: link, lease, metrics: NO_METRICS },
    { onRecord: () => {}, onUndelivered: () => {} },
  )
  const describe = () => ({ role: 'gateway', state: 'active', load: 0, pid: process.pid }) as const
  const membership = new Membership(
    { transport, members: createRedisMembers(link), lease, log, describe },
    {
      onMembers(members) {
        const since = performance.now()
        workers.update(members)
        if (isPrepared) workers.ownerOf('any')
        changesMs.push(performance.now() - since)
      },
      onMemberLost: () => {},
      onEvicted: () => {},
      onKeysLost: () => {},
    },
  )
  const delay = new LoopDelay()
  const since = performance.now()
  delay.start()
  await waitForRedis(() => membership.start(), { log })
  await workers.prepare()
  isPrepared = true
  const joinMs = delay.maxMs()
  const until = 2 * performance.now() - since
  while (performance.now() < until) await setImmediate()
  return { workers, delay, changesMs, joinMs, emptyMs: delay.maxMs() }
}
