import { setTimeout as sleep } from 'node:timers/promises'
import type { Peer, Peers } from '../relay/peer.ts'
import type { Row } from '../relay/row.ts'
import { median } from '../statistics.ts'
import type { PlacingMember } from './placing-member.ts'

const JOINS = 20
const JOINERS = 5
const KNOWN_WITHIN_MS = 10_000
const AFTERWARDS_MS = 50

/** For how long a process that places sessions is busy with one more worker, which changes its ring. */
export async function measureJoins(placing: PlacingMember, hosts: readonly Peer[]): Promise<Row> {
  const { workers, delay, changesMs } = placing
  const busy: number[] = []
  const delays: number[] = []
  for (let i = 0; i < JOINS; i++) {
    const before = workers.eligible.length
    changesMs.length = 0
    delay.start()
    await hosts[i % hosts.length]?.call('workers', { count: 1 })
    const until = performance.now() + KNOWN_WITHIN_MS
    while (workers.eligible.length === before) {
      if (performance.now() > until) throw new Error('a worker that has joined is not known after 10 s')
      await sleep(1)
    }
    await sleep(AFTERWARDS_MS)
    busy.push(Math.max(...changesMs))
    delays.push(delay.maxMs())
  }
  const loop = `delay of its event loop, of this machine too: median ${median([...delays]).toFixed(1)} ms`
  return rowOf('a join blocks the other processes, median', busy, `${workers.eligible.length} workers; ${loop}`)
}

/** The longest delay of the event loop of a process that joins. It compiles its code meanwhile. */
export async function measureJoiningProcess(peers: Peers, redisUrl: string): Promise<Row> {
  const longest: number[] = []
  for (let i = 0; i < JOINERS; i++) {
    await using joiner = await peers.start('member-joiner', { redisUrl })
    longest.push((await joiner.call('join')) as number)
  }
  return rowOf('a join blocks the process that joins, median', longest, 'before its first request')
}

function rowOf(what: string, longest: readonly number[], detail: string): Row {
  const all = `${longest.length} joins, the longest ${Math.max(...longest).toFixed(1)} ms; ${detail}`
  return { goal: 'members', what, value: median([...longest]), bound: { atMost: 10 }, unit: ' ms', detail: all }
}
