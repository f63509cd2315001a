import { setTimeout as sleep } from 'node:timers/promises'
import { HashRing } from '../../../../shared/cluster/members/hash-ring.ts'
import { cpuMs } from '../../proc.ts'
import { median } from '../../statistics.ts'
import type { RelayBench } from '../relay-bench.ts'
import type { Row } from '../row.ts'
import { floodOf, untilFlowing } from '../source/script.ts'
import { format } from '../table.ts'
import { BARE_PATH } from '../target.ts'

const WORKERS = 1_000
const BALANCED_WORKERS = 100
const KEYS = 100_000
const LOOKUP_ROUNDS = 7
const CHANGES = 8
/** Enough streams that each writes one event per loop turn: node:http combines the writes of one socket within a turn. */
const WRITERS = 500

/** Placement of sessions on 1,000 workers: cost of a lookup, keys moved by a change, and evenness (G12). */
export async function measurePlacement(bench: RelayBench): Promise<Row[]> {
  const keys = Array.from({ length: KEYS }, (_, i) => keyOf(i))
  const members = Array.from({ length: WORKERS }, (_, i) => 1_700_000_000 + i)
  const ring = HashRing.of(members)
  const us = lookupUs(ring, keys)
  const writeUs = await socketWriteUs(bench)
  const { moved, needless } = changes(ring, members, keys)
  const even = imbalance(HashRing.of(members.slice(0, BALANCED_WORKERS)), keys)
  const write = `a socket write ${format(writeUs)} us`
  return [
    { goal: 'G12', what: 'lookup, 1,000 workers', value: us, bound: { atMost: 0.3 }, unit: ' us', detail: '' },
    {
      goal: 'G12',
      what: 'lookup / one socket write',
      value: us / writeUs,
      bound: { atMost: 0.03 },
      unit: 'x',
      detail: write,
    },
    {
      goal: 'G12',
      what: 'keys moved by join, leave / ideal',
      value: moved,
      bound: { atMost: 1.2 },
      unit: 'x',
      detail: `the mean of ${CHANGES} of each`,
    },
    {
      goal: 'G12',
      what: 'keys moved needlessly',
      value: needless,
      bound: { atMost: 0 },
      unit: '',
      detail: `of ${KEYS} keys`,
    },
    { goal: 'G12', what: 'max / mean load, 100 workers', value: even, bound: { atMost: 1.35 }, unit: 'x', detail: '' },
  ]
}

const keyOf = (i: number): string => `t_default sess_${(i * 2_654_435_761).toString(16).padStart(16, '0')}`

function lookupUs(ring: HashRing, keys: readonly string[]): number {
  const rounds = Array.from({ length: LOOKUP_ROUNDS }, () => {
    const before = process.threadCpuUsage().user // CPU time, which other processes do not affect.
    for (const key of keys) ring.ownerOf(key)
    return (process.threadCpuUsage().user - before) / keys.length
  })
  return median(rounds.slice(1))
}

/** CPU time of one event that is written on its own. */
async function socketWriteUs(bench: RelayBench): Promise<number> {
  const load = await bench.load()
  const { pid } = await bench.direct()
  const script = floodOf(WRITERS)
  await load.open({ target: await bench.directTarget(BARE_PATH), streams: WRITERS, script })
  await sleep(untilFlowing(script, bench.pick(500, 300)))
  const before = cpuMs(pid)
  const { events } = await load.count(bench.pick(1_500, 700))
  const us = ((cpuMs(pid) - before) * 1000) / events
  await load.close()
  return us
}

/** One worker joins or leaves: the ratio of moved keys to the ideal number, and the keys that moved between other workers. */
function changes(
  ring: HashRing,
  members: readonly number[],
  keys: readonly string[],
): { moved: number; needless: number } {
  const before = keys.map((key) => ring.ownerOf(key))
  const ratios: number[] = []
  let needless = 0
  for (let i = 0; i < CHANGES; i++) {
    const joining = 1_800_000_000 + i
    const leaving = members[i * 97] ?? 0
    for (const [after, member, size] of [
      [HashRing.of([...members, joining]), joining, WORKERS + 1],
      [HashRing.of(members.filter((each) => each !== leaving)), leaving, WORKERS],
    ] as const) {
      const owners = keys.map((key) => after.ownerOf(key))
      const isMoved = (owner: number | undefined, at: number) => owner !== before[at]
      ratios.push(owners.filter(isMoved).length / (keys.length / size))
      needless += owners.filter((owner, at) => isMoved(owner, at) && owner !== member && before[at] !== member).length
    }
  }
  return { moved: ratios.reduce((sum, each) => sum + each, 0) / ratios.length, needless }
}

function imbalance(ring: HashRing, keys: readonly string[]): number {
  const loads = new Map<number, number>()
  for (const key of keys) {
    const owner = ring.ownerOf(key) ?? 0
    loads.set(owner, (loads.get(owner) ?? 0) + 1)
  }
  return (Math.max(...loads.values()) * loads.size) / keys.length
}
