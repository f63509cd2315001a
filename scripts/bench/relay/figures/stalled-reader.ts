import { setTimeout as sleep } from 'node:timers/promises'
import { settledRssMiB } from '../../proc.ts'
import { median } from '../../statistics.ts'
import type { Cluster } from '../cluster.ts'
import type { RelayBench } from '../relay-bench.ts'
import type { Row } from '../row.ts'
import { floodOf, untilFlowing } from '../source/script.ts'
import { format } from '../table.ts'

const STREAMS = 500
const EVENTS_EACH = 2_000
const QUICK_EVENTS_EACH = 400
const WARM_MS = 500
const ALL_WITHIN_MS = 20_000
const CATCH_UP_MS = 2_000
const STALLED = 20

/** Whether saturation loses events, and what a stalled reader costs other streams and in memory (G15). */
export async function measureStalledReader(bench: RelayBench): Promise<Row[]> {
  const faults = await countFaults(bench)
  const others = await rateOfOthers(bench)
  const memory = await memoryOfStalled(bench)
  return [
    {
      goal: 'G15',
      what: 'events lost, repeated or out of order',
      value: faults.count + others.faults,
      bound: { atMost: 0 },
      unit: '',
      detail: faults.detail,
    },
    {
      goal: 'G15',
      what: 'rate of others beside a stalled stream',
      value: others.ratio,
      bound: { atLeast: 0.95 },
      unit: 'x',
      detail: others.detail,
    },
    {
      goal: 'G15',
      what: 'memory per stalled stream',
      value: memory.mib,
      bound: { atMost: 3 },
      unit: ' MiB',
      detail: memory.detail,
    },
  ]
}

/** Reads 500 unpaced runs to their ends. */
async function countFaults(bench: RelayBench): Promise<{ count: number; detail: string }> {
  const load = await bench.load()
  const { target } = await bench.relay()
  const count = bench.pick(EVENTS_EACH, QUICK_EVENTS_EACH)
  const script = { ...floodOf(STREAMS), count }
  await load.open({ target, streams: STREAMS, script })
  await load.ends(ALL_WITHIN_MS)
  const { lost, repeated, ended, endings } = await load.report()
  await load.close()
  const unfinished = STREAMS - ended + endings.filter((ending) => ending !== 'done').length
  return {
    count: lost + repeated + unfinished,
    detail: `${STREAMS} runs of ${count} events, ${ended} ended`,
  }
}

/** Measures windows with and without a stalled stream alternately; each time another stream stalls. */
async function rateOfOthers(bench: RelayBench): Promise<{ ratio: number; faults: number; detail: string }> {
  const load = await bench.load()
  const { target } = await bench.relay()
  const rounds = bench.pick(6, 2)
  const windowMs = bench.pick(1_200, 700)
  const script = floodOf(STREAMS)
  await load.open({ target, streams: STREAMS, script })
  await sleep(untilFlowing(script, WARM_MS))
  const [free, beside] = [[], []] as [number[], number[]]
  for (let victim = 0; victim < rounds; victim++) {
    free.push((await load.count(windowMs, rounds)).events)
    await load.setReading(false, victim, victim + 1)
    beside.push((await load.count(windowMs, rounds)).events)
    await load.setReading(true, victim, victim + 1)
  }
  await sleep(CATCH_UP_MS)
  const { lost, repeated, ended, endings } = await load.report()
  await load.close()
  const perSecond = (events: readonly number[]) => `${format(median(events) / windowMs)} k/s`
  const strange = endings.filter((ending) => ending !== 'error').length + Math.max(0, ended - rounds)
  const ratio = median(
    beside.map(
      (events, round) => events / ((free[round] ?? events) / 2 + (free[round + 1] ?? free[round] ?? events) / 2),
    ),
  )
  return {
    ratio,
    faults: lost + repeated + strange,
    detail: `${perSecond(beside)} to ${perSecond(free)}; ${ended} of ${rounds} stalled ones were cut off, the others lost nothing`,
  }
}

/** Uses new processes, whose memory the earlier measurements have not enlarged. */
async function memoryOfStalled(bench: RelayBench): Promise<{ mib: number; detail: string }> {
  const load = await bench.load()
  await using cluster = await bench.startRelay()
  const order = () => ({ target: cluster.target, streams: STALLED, script: floodOf(STALLED) })
  await load.open(order())
  await load.count(bench.pick(1_000, 500))
  await load.close()
  const before = await memoryOf(cluster, bench)
  await load.open(order())
  await load.setReading(false, 0, STALLED)
  await sleep(bench.pick(3_000, 1_500))
  const after = await memoryOf(cluster, bench)
  await load.close()
  const sum = (rss: Memory) => rss.gateway + rss.worker
  const part = (of: keyof Memory) => `${of} ${format(before[of])} to ${format(after[of])} MiB`
  return {
    mib: (sum(after) - sum(before)) / STALLED,
    detail: `${STALLED} of them; ${part('gateway')}, ${part('worker')}`,
  }
}

type Memory = { gateway: number; worker: number }

async function memoryOf({ gateway, worker }: Cluster, bench: RelayBench): Promise<Memory> {
  const settling = { calmMs: 1_000, slackMiB: 1, maxMs: bench.pick(6_000, 2_500), signal: AbortSignal.timeout(60_000) }
  const [above = 0, below = 0] = await Promise.all([gateway, worker].map(({ pid }) => settledRssMiB(pid, settling)))
  return { gateway: above, worker: below }
}
