import { setTimeout as sleep } from 'node:timers/promises'
import type { Metric, Registry } from 'prom-client'
import {
  COUNTERS,
  type CounterName,
  GAUGES,
  type GaugeName,
  type GaugeValue,
  HISTOGRAMS,
  type HistogramName,
} from '../../shared/metrics.ts'
import type { HistogramReading, MetricsRegistry } from './registry.ts'

const PREFIX = 'agent_engine_'
/** Between two looks at the event loop; finer costs an idle process more CPU than all its work. */
const LOOP_DELAY_MS = 20

/** What `/metrics` answers. */
export type Exposition = () => Promise<{ contentType: string; text: string }>

/**
 * A process's numbers as Prometheus's text, with prom-client's own about the process and Node beside them. The library (25 ms of a
 * start) is loaded, and the event loop watched, from the first call on: most processes are never asked.
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
  await sleep(3 * LOOP_DELAY_MS) // Before its first looks Node's histogram of delays holds nonsense.
  return registry
}

function metricsOf(numbers: MetricsRegistry): Metric[] {
  const counter = (name: CounterName) => {
    const fullName = `${PREFIX}${name}_total`
    return toMetric({ name: fullName, help: COUNTERS[name], type: 'counter' }, () => [one(numbers.counter(name))])
  }
  const gauge = (name: GaugeName) =>
    toMetric({ name: PREFIX + name, help: GAUGES[name], type: 'gauge' }, () => gaugeLines(numbers.gaugeValue(name)))
  const histogram = (name: HistogramName) => {
    const fullName = PREFIX + name
    const { help } = HISTOGRAMS[name]
    return toMetric({ name: fullName, help, type: 'histogram' }, () => bucketLines(fullName, numbers.histogram(name)))
  }
  return [
    ...(Object.keys(COUNTERS) as CounterName[]).map(counter),
    ...(Object.keys(GAUGES) as GaugeName[]).map(gauge),
    ...(Object.keys(HISTOGRAMS) as HistogramName[]).map(histogram),
  ]
}

type Head = { name: string; help: string; type: 'counter' | 'gauge' | 'histogram' }
/** One line of the text; under the metric's own name unless it has one. */
type Line = { metricName?: string; labels: Record<string, string>; value: number }

/** A registry asks its metrics for `get` and for their names: the library's own classes, which count for themselves, are not needed. */
function toMetric(head: Head, read: () => Line[]): Metric {
  const get = async () => ({ ...head, aggregator: 'sum', values: read() })
  return { ...head, get } as unknown as Metric
}

const one = (value: number): Line => ({ value, labels: {} })

function gaugeLines(value: GaugeValue | undefined): Line[] {
  if (value === undefined) return []
  if (typeof value === 'number') return [one(value)]
  return Object.entries(value).map(([state, count]) => ({ value: count, labels: { state } }))
}

/** Prometheus's buckets are cumulative. */
function bucketLines(name: string, { bounds, counts, sum }: HistogramReading): Line[] {
  let below = 0
  const buckets = counts.map((count, i) => {
    below += count
    return { metricName: `${name}_bucket`, labels: { le: String(bounds[i] ?? '+Inf') }, value: below }
  })
  const total = { metricName: `${name}_count`, labels: {}, value: below }
  return [...buckets, { metricName: `${name}_sum`, labels: {}, value: sum }, total]
}
