/** What a process counts about itself, by the names under which `/metrics` shows it (reliability.md rule 15). */
export const COUNTERS = {
  streams_opened: 'Streams that readers have opened',
  events: 'Events that runs of this process have produced',
  frames_relayed: 'Frames that came over the relay and were delivered to streams',
  gaps_asked: 'Holes in streams for which a resend was asked',
  gaps_repaired: 'Holes in streams that a resend has closed',
  gaps_lost: 'Streams that ended with stream_gap',
  streams_lost: 'Streams that ended with worker_lost or relay_unavailable',
  slow_consumers: 'Readers that were cut off because they did not read',
  stale_frames_dropped: 'Frames of processes that had been judged dead',
  fence_refusals: 'Tool starts and writes that were refused because this process may have been replaced',
} as const

/** Each with the upper bounds of its buckets; what is above the last is counted too. */
export const HISTOGRAMS = {
  relay_batch_bytes: {
    help: 'Bytes of one message to another process',
    bounds: [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576],
  },
  permission_wait_seconds: {
    help: 'From a permission request to its decision',
    bounds: [0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 900],
  },
} as const

export const GAUGES = {
  streams: 'Streams that are open',
  runs: 'Runs that this process knows, by state',
  permissions_pending: 'Permission requests that wait for their client',
  sessions: 'Sessions that live in this process',
} as const

export type CounterName = keyof typeof COUNTERS
export type HistogramName = keyof typeof HISTOGRAMS
export type GaugeName = keyof typeof GAUGES

/** One number, or one per state. */
export type GaugeValue = number | Readonly<Record<string, number>>

/** Where code below the ops listener counts; counting costs an addition. */
export interface Metrics {
  count(name: CounterName, by?: number): void
  observe(name: HistogramName, value: number): void
  /** `read` is called whenever somebody looks. */
  gauge(name: GaugeName, read: () => GaugeValue): void
}

/** Counts for nobody. */
export const NO_METRICS: Metrics = { count: () => {}, observe: () => {}, gauge: () => {} }
