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
  of: (sample: Sample) => number
  bound: Goal
}

const rate = (sample: Sample): number => sample.perSecond
const cpu = (sample: Sample): number => sample.us

const COMPARISONS: readonly Comparison[] = [
  { goal: 'G1', what: 'rate / direct by 1', a: 'relay500', b: 'direct500by1', of: rate, bound: { atLeast: 6 } },
  { goal: 'G2', what: 'rate / direct by 16', a: 'relay500', b: 'direct500by16', of: rate, bound: { atLeast: 0.8 } },
  { goal: 'G3', what: 'rate / direct by 4', a: 'relay50', b: 'direct50by4', of: rate, bound: { atLeast: 2.2 } },
  { goal: 'G3', what: 'rate / direct by 200', a: 'relay1', b: 'direct1by200', of: rate, bound: { atLeast: 0.55 } },
  { goal: 'G4', what: 'rate / JSON relay', a: 'relay50', b: 'json50', of: rate, bound: { atLeast: 7 } },
  { goal: 'G4', what: 'rate / JSON relay', a: 'relay500', b: 'json500', of: rate, bound: { atLeast: 12 } },
  { goal: 'G5', what: 'CPU per event / JSON relay', a: 'relay50', b: 'json50', of: cpu, bound: { atMost: 1 / 8 } },
  { goal: 'G5', what: 'CPU per event / JSON relay', a: 'relay500', b: 'json500', of: cpu, bound: { atMost: 1 / 10 } },
]

const REDIS_DESIGNS: readonly DesignName[] = ['relay50', 'relay500']
const REDIS_US = 0.25

/** Events per second through the relay and CPU per event, compared with other designs (G1 to G5). `direct by 16`: without a relay, 16 events per write. */
export async function measureThroughput(bench: RelayBench, wanted: (goal: string) => boolean): Promise<Row[]> {
  const comparisons = COMPARISONS.filter(({ goal }) => wanted(goal))
  const needed = new Set(comparisons.flatMap(({ a, b }) => [a, b]))
  const names = (Object.keys(DESIGNS) as DesignName[]).filter((name) => needed.has(name))
  const { samples, failures } = await sampleAll(bench, names)
  const isMeasured = (name: DesignName) => failures[name] === undefined
  const redis = wanted('G5') ? REDIS_DESIGNS.filter(isMeasured).map((name) => redisRow(name, samples)) : []
  return [...comparisons.map((comparison) => toRow(comparison, samples, failures)), ...redis]
}

function toRow({ goal, what, a, b, of, bound }: Comparison, samples: Samples, failures: Failures): Row {
  const { streams } = DESIGNS[a]
  const failure = failures[a] ?? failures[b]
  if (failure !== undefined) return { goal, what, bound, unit: 'x', detail: failure }
  const detail = of === rate ? `${ratesOf(samples[a])} to ${ratesOf(samples[b])}` : costsOf(samples[a], samples[b])
  const value = ratio(samples[a], samples[b], of)
  return { goal, what: `${what}, ${streams} ${streams === 1 ? 'stream' : 'streams'}`, value, bound, unit: 'x', detail }
}

function redisRow(name: DesignName, samples: Samples): Row {
  const value = median(samples[name].map(({ redisUs }) => redisUs))
  const what = `CPU of Redis per event, ${DESIGNS[name].streams} streams`
  return { goal: 'G5', what, value, bound: { atMost: REDIS_US }, unit: ' us', detail: '' }
}

const ratesOf = (samples: readonly Sample[]): string => `${format(median(samples.map(rate)) / 1000)} k/s`

function costsOf(a: readonly Sample[], b: readonly Sample[]): string {
  const share = (part: 'gateway' | 'worker' | 'redis') =>
    format(median(a.map((sample) => (sample.us * sample.cpu[part]) / sumOf(sample))))
  const parts = `gateway ${share('gateway')}, worker ${share('worker')}, Redis ${share('redis')}`
  return `${format(median(a.map(cpu)))} us (${parts}) to ${format(median(b.map(cpu)))} us`
}

const sumOf = ({ cpu: { gateway, worker, redis } }: Sample): number => gateway + worker + redis
