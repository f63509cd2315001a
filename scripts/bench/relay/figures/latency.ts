import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../statistics.ts'
import type { RelayBench } from '../relay-bench.ts'
import type { Row } from '../row.ts'
import type { Script } from '../source/script.ts'
import { format } from '../table.ts'
import { BARE_PATH, type Target } from '../target.ts'

const STREAMS = 100
/** 2,000 events a second with 100 streams. */
const PACED: Script = { mode: 'paced', everyMs: 50 }
const OPEN_PER_SECOND = 1_000
const WARM_MS = 300

/** Time from the creation of an event to its reader at 2,000 events a second, through the relay and directly (G7). */
export async function measureLatency(bench: RelayBench): Promise<Row[]> {
  const relay = (await bench.relay()).target
  const direct = await bench.directTarget(BARE_PATH)
  const [relayed, straight] = [[], []] as [Latency[], Latency[]]
  for (const target of [direct, relay]) await sample(bench, target)
  for (let round = 0; round < bench.pick(5, 2); round++) {
    straight.push(await sample(bench, direct))
    relayed.push(await sample(bench, relay))
  }
  const added = (of: 'p50' | 'p99') => median(relayed.map((each, round) => each[of] - (straight[round]?.[of] ?? 0)))
  const times = median(relayed.map(({ p50 }, round) => p50 / (straight[round]?.p50 ?? p50)))
  const detail = (of: 'p50' | 'p99') =>
    `${format(median(relayed.map((each) => each[of])))} to ${format(median(straight.map((each) => each[of])))} ms`
  const shared = { goal: 'G7', detail: detail('p50') }
  return [
    { ...shared, what: 'p50 added, 2,000 events/s', value: added('p50'), bound: { atMost: 0.2 }, unit: ' ms' },
    { ...shared, what: 'p50 / direct', value: times, bound: { atMost: 2.7 }, unit: 'x' },
    {
      goal: 'G7',
      what: 'p99 added (on a quiet machine)',
      value: added('p99'),
      bound: { atMost: 1 },
      unit: ' ms',
      detail: detail('p99'),
    },
  ]
}

type Latency = { p50: number; p99: number }

async function sample(bench: RelayBench, target: Target): Promise<Latency> {
  const load = await bench.load()
  await load.open({ target, streams: STREAMS, script: PACED, perSecond: OPEN_PER_SECOND })
  await sleep(WARM_MS)
  const latency = await load.latencies(bench.pick(2_000, 900))
  await load.close()
  return latency
}
