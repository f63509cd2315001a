import type { TenantRange } from '../../cluster/commands/tenant-loads.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Durations } from './durations.ts'

/** The dimensions of which a run has one value at most. */
export const CROSSED = ['model', 'kind', 'flow', 'customer', 'subject'] as const
export type Crossed = (typeof CROSSED)[number]

/** The dimensions for which rows are kept (D21): one dimension, or `crossed`, which has a row for each combination of values of `CROSSED`. */
export const DIMENSIONS = [...CROSSED, 'metadata', 'crossed'] as const
export type Dimension = (typeof DIMENSIONS)[number]

/** A pair of a run's metadata as the key of a row. Names contain no `=`. */
export const pairOf = ([name, value]: readonly [string, string]): string => `${name}=${value}`

export const BUCKETS = ['hour', 'day'] as const
export type Bucket = (typeof BUCKETS)[number]

/** The usage of a run that has ended. A dimension without a value is missing. */
export type RunUsage = { readonly [dimension in Crossed]?: string | undefined } & {
  /** Each pair as `pairOf` writes it. */
  metadata?: readonly string[]
  hasFailed: boolean
  /** Whether it is a flow whose output does not fit the schema. */
  isInvalid: boolean
  input_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  output_tokens: number
  cost_usd: number
  ms: number
}

/** The sums of several runs. */
export type UsageSums = {
  runs: number
  failed: number
  /** Invalid runs are not counted as failed. */
  invalid: number
  input_tokens: number
  /** Both are parts of the input. */
  cache_read_tokens: number
  cache_write_tokens: number
  output_tokens: number
  cost_usd: number
  durations: Durations
}

/** Sums by the value of a dimension; `NO_KEY` is the key of the runs without a value. */
export type UsageRows = ReadonlyMap<string, UsageSums>
export const NO_KEY = ''

/** The place of rows. `start` is the time in ISO 8601 at which the hour or day (UTC) begins. */
export type UsagePlace = { by: Dimension; bucket: Bucket; start: string }

/** The sums that one process adds to a place. A process numbers its additions in ascending order, so that a repeated one is not counted twice. */
export type UsageAddition = UsagePlace & { rows: UsageRows; process: string; number: number }

/** The usage of each tenant. Every method throws `unavailable` when the store does not answer. */
export interface UsageStore {
  /** Returns `false`, and adds nothing, when other processes constantly write to the same place. */
  add(tenant: TenantId, addition: UsageAddition): Promise<boolean>
  /** At most `limit` places with a start from `from` to `until`, both inclusive, in the order of time. */
  read(tenant: TenantId, range: UsageRange): Promise<{ start: string; rows: UsageRows }[]>
  /** The tenants whose runs have ended on a day, by name. The record of a day is kept for two days. */
  tenants(day: string, range: TenantRange): Promise<TenantId[]>
}

export type UsageRange = { by: Dimension; bucket: Bucket; from: string; until: string; limit: number }
