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
export async function measureJoins(placing: PlacingMember, hosts: readonly Peer[]): Promise<Row[]> {
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
  const loop = `delay of its event loop, of this machine too: median ${median(delays).toFixed(1)} ms`
  return [
    rowOf('a join blocks the other processes, median', median(busy), `${JOINS} joins; ${loop}`),
    rowOf('a join blocks the other processes, longest', Math.max(...busy), `${workers.eligible.length} workers`),
  ]
}

/** The longest delay of the event loop of a process that joins. It compiles its code meanwhile. */
export async function measureJoiningProcess(peers: Peers, redisUrl: string): Promise<Row> {
  const joining: number[] = []
  const empty: number[] = []
  for (let i = 0; i < JOINERS; i++) {
    await using joiner = await peers.start('member-joiner', { redisUrl })
    const { joinMs, emptyMs } = (await joiner.call('join')) as { joinMs: number; emptyMs: number }
    joining.push(joinMs)
    empty.push(emptyMs)
  }
  const longest = `${JOINERS} joins, the longest ${Math.max(...joining).toFixed(1)} ms; before its first request`
  const machine = `in empty turns afterwards, so by this machine: median ${median(empty).toFixed(1)} ms`
  return rowOf('a join blocks the process that joins, median', median(joining), `${longest}; ${machine}`)
}

const rowOf = (what: string, value: number, detail: string): Row => ({
  goal: 'members',
  what,
  value,
  bound: { atMost: 10 },
  unit: ' ms',
  detail,
})
