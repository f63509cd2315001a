import {
  COUNTERS,
  type CounterName,
  DIVIDED_COUNTERS,
  type DividedName,
  type GaugeName,
  type GaugeValue,
  HISTOGRAMS,
  type HistogramName,
  type Metrics,
} from '../../shared/kernel/metrics.ts'

/**
 * `counts[i]` is the number of values up to `bounds[i]` and above the bound before it. The last one counts the values above all
 * bounds.
 */
export type HistogramReading = { bounds: readonly number[]; counts: readonly number[]; sum: number }

/** Holds the numbers of a process. They are rendered only when `/metrics` is requested. */
export class MetricsRegistry implements Metrics {
  readonly #counters = mapKeys(COUNTERS, () => 0)
  readonly #divided = mapKeys(DIVIDED_COUNTERS, (name) => zeroFor(DIVIDED_COUNTERS[name].values))
  readonly #histograms = mapKeys(HISTOGRAMS, (name) => emptyHistogram(HISTOGRAMS[name].bounds))
  readonly #gauges = new Map<GaugeName, () => GaugeValue | Promise<GaugeValue>>()

  count(name: CounterName, by = 1): void {
    this.#counters[name] += by
  }

  countDivided(name: DividedName, value: string, by = 1): void {
    const counts = this.#divided[name]
    counts.set(value, (counts.get(value) ?? 0) + by)
  }

  observe(name: HistogramName, value: number): void {
    const histogram = this.#histograms[name]
    const { bounds, counts } = histogram
    let bucket = 0
    while (value > (bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket++
    counts[bucket] = (counts[bucket] ?? 0) + 1
    histogram.sum += value
  }

  gauge(name: GaugeName, read: () => GaugeValue | Promise<GaugeValue>): void {
    this.#gauges.set(name, read)
  }

  counter(name: CounterName): number {
    return this.#counters[name]
  }

  divided(name: DividedName): ReadonlyMap<string, number> {
    return this.#divided[name]
  }

  histogram(name: HistogramName): HistogramReading {
    return this.#histograms[name]
  }

  /** `undefined` when this process does not have the gauge: a gateway has no sessions. */
  async gaugeValue(name: GaugeName): Promise<GaugeValue | undefined> {
    return this.#gauges.get(name)?.()
  }
}

const zeroFor = (values: readonly string[]) => new Map(values.map((value) => [value, 0]))

const emptyHistogram = (bounds: readonly number[]) => ({ bounds, counts: [...bounds, 0].map(() => 0), sum: 0 })

function mapKeys<Name extends string, T>(table: Record<Name, unknown>, valueOf: (name: Name) => T): Record<Name, T> {
  const names = Object.keys(table) as Name[]
  return Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<Name, T>
}
