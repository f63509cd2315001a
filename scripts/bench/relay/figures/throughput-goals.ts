import type { Goal } from '../../figure.ts'
import { median } from '../../statistics.ts'
import type { RelayBench } from '../relay-bench.ts'
import type { Row } from '../row.ts'
import { format } from '../table.ts'
import { DESIGNS, type DesignName, type Failures, ratio, type Sample, type Samples, sampleAll } from './throughput.ts'

type Comparison = {
  goal: string
  what: string
  a: DesignName
  b: DesignName
  bound: Goal
}

const rate = (sample: Sample): number => sample.perSecond
const cpu = (sample: Sample): number => sample.us

const COMPARISONS: readonly Comparison[] = [
  { goal: 'G1', what: 'rate / direct by 1', a: 'relay500', b: 'direct500by1', bound: { atLeast: 6 } },
  { goal: 'G2', what: 'rate / direct by 16', a: 'relay500', b: 'direct500by16', bound: { atLeast: 0.8 } },
  { goal: 'G3', what: 'rate / direct by 4', a: 'relay50', b: 'direct50by4', bound: { atLeast: 2.2 } },
  { goal: 'G3', what: 'rate / direct by 200', a: 'relay1', b: 'direct1by200', bound: { atLeast: 0.55 } },
]

const REDIS_DESIGNS: readonly DesignName[] = ['relay50', 'relay500']
const REDIS_US = 0.25

/** Events per second through the relay, compared with none (G1 to G3), and the CPU time of Redis for each (G5). `direct by 16`: without a relay, 16 events per write. */
export async function measureThroughput(bench: RelayBench, wanted: (goal: string) => boolean): Promise<Row[]> {
  const comparisons = COMPARISONS.filter(({ goal }) => wanted(goal))
  const ofRedis = wanted('G5') ? REDIS_DESIGNS : []
  const needed = new Set([...comparisons.flatMap(({ a, b }) => [a, b]), ...ofRedis])
  const names = (Object.keys(DESIGNS) as DesignName[]).filter((name) => needed.has(name))
  const { samples, failures } = await sampleAll(bench, names)
  return [
    ...comparisons.map((comparison) => toRow(comparison, samples, failures)),
    ...ofRedis.map((name) => redisRow(name, samples, failures)),
  ]
}

function toRow({ goal, what, a, b, bound }: Comparison, samples: Samples, failures: Failures): Row {
  const { streams } = DESIGNS[a]
  const failure = failures[a] ?? failures[b]
  if (failure !== undefined) return { goal, what, bound, unit: 'x', detail: failure }
  const detail = `${ratesOf(samples[a])} to ${ratesOf(samples[b])}`
  const value = ratio(samples[a], samples[b], rate)
  return { goal, what: `${what}, ${streams} ${streams === 1 ? 'stream' : 'streams'}`, value, bound, unit: 'x', detail }
}

function redisRow(name: DesignName, samples: Samples, failures: Failures): Row {
  const what = `CPU of Redis per event, ${DESIGNS[name].streams} streams`
  const row: Row = { goal: 'G5', what, bound: { atMost: REDIS_US }, unit: ' us', detail: failures[name] ?? '' }
  if (failures[name] !== undefined) return row
  const value = median(samples[name].map(({ redisUs }) => redisUs))
  return { ...row, value, detail: costOf(samples[name]) }
}

const ratesOf = (samples: readonly Sample[]): string => `${format(median(samples.map(rate)) / 1000)} k/s`

function costOf(samples: readonly Sample[]): string {
  const share = (part: 'gateway' | 'worker' | 'redis') =>
    format(median(samples.map((sample) => (sample.us * sample.cpu[part]) / sumOf(sample))))
  const parts = `gateway ${share('gateway')}, worker ${share('worker')}, Redis ${share('redis')}`
  return `of ${format(median(samples.map(cpu)))} us (${parts})`
}

const sumOf = ({ cpu: { gateway, worker, redis } }: Sample): number => gateway + worker + redis
