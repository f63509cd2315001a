import { Redis } from 'ioredis'
import type { Peer, Peers } from '../relay/peer.ts'

const HOSTS = 2
/** So many join at once in one host. */
const JOINS_AT_ONCE = 20
const SAY_EVERY = 250

type Counts = { workers: number; gateways: number; say(text: string): void }

/** Starts the processes that simulate the members, and lets them join. */
export async function startMembers(peers: Peers, redisUrl: string, counts: Counts): Promise<Peer[]> {
  const hosts = await Promise.all(Array.from({ length: HOSTS }, () => peers.start('member-host', { redisUrl })))
  await Promise.all(hosts.map((host) => host.call('gateways', { count: counts.gateways / HOSTS })))
  let said = 0
  for (let joined = 0; joined < counts.workers; ) {
    const count = Math.min(JOINS_AT_ONCE, Math.ceil((counts.workers - joined) / HOSTS))
    const done = (await Promise.all(hosts.map((host) => host.call('workers', { count })))) as number[]
    joined += done.reduce((sum, each) => sum + each, 0)
    if (joined - said < SAY_EVERY && joined < counts.workers) continue
    said = joined
    counts.say(`${joined} workers and ${counts.gateways} gateways have joined`)
  }
  await checkMembers(redisUrl, counts.workers + counts.gateways)
  return hosts
}

async function checkMembers(redisUrl: string, atLeast: number): Promise<void> {
  const client = new Redis(redisUrl)
  const members = await client.hlen('ae:{members}')
  client.disconnect()
  if (members < atLeast) throw new Error(`of ${atLeast} members only ${members} have stayed: this machine is too slow`)
}
