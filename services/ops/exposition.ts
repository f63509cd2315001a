import { setTimeout as sleep } from 'node:timers/promises'
import type { Metric, Registry } from 'prom-client'
import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import {
  COUNTERS,
  type CounterName,
  DIVIDED_COUNTERS,
  type DividedName,
  GAUGES,
  type GaugeName,
  type GaugeValue,
  HISTOGRAMS,
  type HistogramName,
  type LabelledValue,
} from '../../shared/kernel/metrics.ts'
import type { HistogramReading, MetricsRegistry } from './registry.ts'

const PREFIX = 'agent_engine_'
/** Sampling interval of the event-loop delay. A shorter one would cost an idle process most of its CPU time. */
const LOOP_DELAY_MS = 20
const GAUGE_MS = 1_000
/** Gauges of prom-client whose names are those of counters. The same numbers by type are in `nodejs_active_*` without the suffix. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/** Renders the answer of `/metrics`. */
export type Exposition = () => Promise<{ contentType: string; text: string }>

/**
 * Renders the numbers of a process in Prometheus's text format, together with prom-client's default metrics about the process. The
 * library, which takes 25 ms to load, is loaded at the first call: most processes are never scraped.
 */
export function createExposition(numbers: MetricsRegistry): Exposition {
  let opened: Promise<Registry> | undefined
  return async () => {
    opened ??= openRegistry(numbers)
    const registry = await opened
    return { contentType: registry.contentType, text: await registry.metrics() }
  }
}

async function openRegistry(numbers: MetricsRegistry): Promise<Registry> {
  const { Registry, collectDefaultMetrics } = await import('prom-client')
  const registry = new Registry()
  for (const metric of metricsOf(numbers)) registry.registerMetric(metric)
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_DELAY_MS })
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  await sleep(3 * LOOP_DELAY_MS) // Node's delay histogram has no valid values before its first samples.
  return registry
}

function metricsOf(numbers: MetricsRegistry): Metric[] {
  const counter = (name: CounterName) => {
    const fullName = `${PREFIX}${name}_total`
    return toMetric({ name: fullName, help: COUNTERS[name], type: 'counter' }, () => [one(numbers.counter(name))])
  }
  const divided = (name: DividedName) => {
    const { help, label } = DIVIDED_COUNTERS[name]
    const read = () => [...numbers.divided(name)].map(([key, value]) => ({ value, labels: { [label]: key } }))
    return toMetric({ name: `${PREFIX}${name}_total`, help, type: 'counter' }, read)
  }
  const gauge = (name: GaugeName) =>
    toMetric({ name: PREFIX + name, help: GAUGES[name], type: 'gauge' }, async () =>
      gaugeSamples(await inTime(numbers.gaugeValue(name))),
    )
  const histogram = (name: HistogramName) => {
    const fullName = PREFIX + name
    const { help } = HISTOGRAMS[name]
    return toMetric({ name: fullName, help, type: 'histogram' }, () => bucketSamples(fullName, numbers.histogram(name)))
  }
  return [
    ...(Object.keys(COUNTERS) as CounterName[]).map(counter),
    ...(Object.keys(DIVIDED_COUNTERS) as DividedName[]).map(divided),
    ...(Object.keys(GAUGES) as GaugeName[]).map(gauge),
    ...(Object.keys(HISTOGRAMS) as HistogramName[]).map(histogram),
  ]
}

type Head = { name: string; help: string; type: 'counter' | 'gauge' | 'histogram' }
/** One value of a metric. Without `metricName` it has the name of the metric. */
type Sample = { metricName?: string; labels: Record<string, string>; value: number }

/**
 * Wraps a read function as a metric. A registry only calls `get` and reads the name, so prom-client's classes, which count by
 * themselves, are not needed.
 */
function toMetric(head: Head, read: () => Sample[] | Promise<Sample[]>): Metric {
  const get = async () => ({ ...head, aggregator: 'sum', values: await read() })
  return { ...head, get } as unknown as Metric
}

/** A gauge that cannot be read in time is left out, and the others are shown. */
const inTime = (value: Promise<GaugeValue | undefined>): Promise<GaugeValue | undefined> =>
  withDeadline(value, GAUGE_MS, () => new Error('the gauge is not read in time')).catch(() => undefined)

const one = (value: number): Sample => ({ value, labels: {} })

function gaugeSamples(value: GaugeValue | undefined): Sample[] {
  if (value === undefined) return []
  if (typeof value === 'number') return [one(value)]
  if (isLabelled(value)) return value.map((each) => ({ value: each.value, labels: { ...each.labels } }))
  return Object.entries(value).map(([state, count]) => ({ value: count, labels: { state } }))
}

const isLabelled = (value: Exclude<GaugeValue, number>): value is readonly LabelledValue[] => Array.isArray(value)

/** Prometheus's buckets are cumulative. */
function bucketSamples(name: string, { bounds, counts, sum }: HistogramReading): Sample[] {
  let below = 0
  const buckets = counts.map((count, i) => {
    below += count
    return { metricName: `${name}_bucket`, labels: { le: String(bounds[i] ?? '+Inf') }, value: below }
  })
  const total = { metricName: `${name}_count`, labels: {}, value: below }
  return [...buckets, { metricName: `${name}_sum`, labels: {}, value: sum }, total]
}
