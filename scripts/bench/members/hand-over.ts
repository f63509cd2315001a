import { createRedisOwners } from '../../../shared/cluster/owners/redis-owners.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import type { Peer } from '../relay/peer.ts'
import type { Row } from '../relay/row.ts'
import { createSession, joinWorker } from './simulated.ts'

const HELD_SECS = 3_600

/** Drains a worker with this many sessions. */
export async function measureHandOver(redisUrl: string, hosts: readonly Peer[], count: number): Promise<Row> {
  const worker = await joinWorker(redisUrl, process.pid)
  const link = await openRedisLink(redisUrl)
  const owners = createRedisOwners(link)
  for (let i = 0; i < count; i++) {
    const session = createSession(`s${i}`)
    await owners.claim(session, { epoch: worker.epoch, token: session.token }, HELD_SECS)
    worker.sessions.add(session)
  }
  const since = performance.now()
  await worker.drain(0)
  const ms = performance.now() - since
  const left = worker.sessions.size
  await worker.leave()
  await link.close()
  const [taken, evicted] = [await sumOf(hosts, 'adopted'), await sumOf(hosts, 'evicted')]
  if (taken !== count || left > 0) {
    const why = `${evicted} workers were evicted, which is no fault on a machine that is too slow for them`
    throw new Error(`of ${count} sessions ${taken} were taken over, and ${left} are left; ${why}`)
  }
  const detail = `${taken} taken over, ${left} left`
  return {
    goal: 'members',
    what: `hand-over of ${count} sessions`,
    value: ms,
    bound: { atMost: 10_000 },
    unit: ' ms',
    detail,
  }
}

async function sumOf(hosts: readonly Peer[], method: 'adopted' | 'evicted'): Promise<number> {
  const counts = (await Promise.all(hosts.map((host) => host.call(method)))) as number[]
  return counts.reduce((sum, each) => sum + each, 0)
}
