import { RUN_ERROR_CODES, type RunErrorCode } from './events.ts'

/** How a run, flow, plan or step has ended. */
export type RunEndCode = 'ok' | 'plan_failed' | RunErrorCode

/** The counters of a process with their help texts. `/metrics` shows them as `agent_engine_<name>_total`. */
export const COUNTERS = {
  streams_opened: 'Streams that clients opened',
  events: 'Events that the runs of this process produced',
  frames_relayed: 'Frames that arrived over the relay and were delivered to streams',
  gaps_asked: 'Gaps in streams for which a resend was requested',
  gaps_repaired: 'Gaps in streams that a resend closed',
  gaps_lost: 'Streams that ended with stream_gap',
  streams_lost: 'Streams that ended with worker_lost or relay_unavailable',
  slow_consumers: 'Clients that were cut off because they did not read',
  stale_frames_dropped:
    'Frames, and pieces of large frames, that were dropped because their process had been removed from the cluster',
  messages_dropped: 'Messages that were dropped because they were malformed or of another version',
  cost_usd: 'US dollars that ended runs cost, by the known prices of their models',
  webhook_rests:
    "Rests of webhooks' receivers that began: after three failed attempts in a row, and after each further one",
  run_records_lost: 'Runs that ended and were not recorded, because the store was away too long',
  open_runs_left:
    'Documents of runs that last which were not deleted, because the store was away too long or refused it',
  fence_refusals: 'Tool starts and writes that were refused because this process may have been replaced',
  provider_refusals: 'Model calls that providers refused for the rate of requests',
  calls_abandoned:
    'Requests to providers that were abandoned, because another one of the same model call answered first',
} as const

/** Counters that are divided by one label: `/metrics` shows `agent_engine_<name>_total{<label>="<value>"}`. */
export const DIVIDED_COUNTERS = {
  runs_ended: {
    help: 'Runs, messages, flows, plans and steps that ended, by their code; `ok` is a success',
    label: 'code',
    values: ['ok', 'plan_failed', ...RUN_ERROR_CODES] as readonly RunEndCode[],
  },
  provider_requests: {
    help: 'Requests to providers in the turns of ended runs, by their outcome',
    label: 'outcome',
    values: ['ok', 'retried', 'failed_over', 'failed'],
  },
  tokens: { help: 'Tokens of ended runs, by their direction', label: 'direction', values: ['input', 'output'] },
  http_responses: {
    help: 'Answers of the public listener, by their status; 499 is a client that left before its answer',
    label: 'status',
    values: ['200', '400', '401', '404', '429', '499', '500', '503'] as readonly string[],
  },
  refusals: {
    help: 'Requests that were refused, by the cause: the code or else the type of the error',
    label: 'cause',
    values: ['invalid_request', 'authentication', 'rate_limit', 'unavailable'] as readonly string[],
  },
  plan_steps: {
    help: 'Steps of plans that ended, by how they ended',
    label: 'status',
    values: ['done', 'failed', 'skipped'],
  },
  schedule_ticks: {
    help: 'Ticks of schedules, by their outcome: `submitted` a plan, or were skipped for the reason',
    label: 'outcome',
    values: ['submitted', 'plan_not_ended', 'rate_limit', 'plan_limit'],
  },
  webhook_attempts: {
    help: 'Attempts to deliver a webhook, by their outcome; `dead` was the last attempt',
    label: 'outcome',
    values: ['delivered', 'failed', 'dead'],
  },
} as const

/** The histograms with the upper bounds of their buckets. Values above the last bound are counted as well. */
export const HISTOGRAMS = {
  run_first_token_seconds: {
    help: 'Seconds from the start of a run to its first text, thought or tool call',
    bounds: [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60],
  },
  run_duration_seconds: {
    help: 'Seconds that a run took',
    bounds: [0.5, 1, 2, 5, 10, 30, 60, 300, 1_800],
  },
  relay_batch_bytes: {
    help: 'Size of a message to another process, in bytes',
    bounds: [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576],
  },
  permission_wait_seconds: {
    help: 'Seconds from a permission request, or a call that the client makes, to its decision',
    bounds: [0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 900],
  },
  model_turn_wait_seconds: {
    help: 'Seconds that a model call waited for its turn at the provider',
    bounds: [0.01, 0.1, 0.5, 1, 5, 15, 30, 60, 120, 600],
  },
} as const

export const GAUGES = {
  open_to_network: 'Whether other machines can call the API without a token',
  streams: 'Open streams',
  runs: 'Runs that this process has in memory, by state',
  runs_limit: 'Runs that this process executes at a time',
  permissions_pending: 'Permission requests, and calls that clients make, that are not answered yet',
  model_calls_waiting: 'Model calls that wait for their turns at the providers',
  models_resting:
    'Models of instances that this process knows to fail, so that calls with another model pass them over',
  starts_waiting:
    'Starts of runs, flows and items of batches that wait at this process for a place among the runs of their tenants',
  starts_waiting_oldest_seconds: 'Seconds that the oldest of these starts has waited; 0 when none waits',
  sessions: 'Sessions that this process holds',
  queue_jobs: 'Jobs in the queue of the whole cluster, by the kind of work and their state',
  queue_oldest_waiting_seconds:
    'Seconds that the oldest waiting job has waited, by the kind of work; 0 when none waits',
} as const

export type CounterName = keyof typeof COUNTERS
export type DividedName = keyof typeof DIVIDED_COUNTERS
export type DividedValue<Name extends DividedName> = (typeof DIVIDED_COUNTERS)[Name]['values'][number]
export type HistogramName = keyof typeof HISTOGRAMS
export type GaugeName = keyof typeof GAUGES

export type LabelledValue = { labels: Readonly<Record<string, string>>; value: number }

/** One number, or one per state, or one per set of labels. */
export type GaugeValue = number | Readonly<Record<string, number>> | readonly LabelledValue[]

/** Receives the numbers of a process. Counting is an addition and never throws. */
export interface Metrics {
  count(name: CounterName, by?: number): void
  countDivided<Name extends DividedName>(name: Name, value: DividedValue<Name>, by?: number): void
  observe(name: HistogramName, value: number): void
  /** `read` is called whenever `/metrics` is requested. The gauge is left out when it rejects or takes longer than a second. */
  gauge(name: GaugeName, read: () => GaugeValue | Promise<GaugeValue>): void
}

/** Discards every number. */
export const NO_METRICS: Metrics = { count: () => {}, countDivided: () => {}, observe: () => {}, gauge: () => {} }
