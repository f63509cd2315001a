import { encodeCursor, startOfPage } from '../../../kernel/cursor.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { ApiType } from '../../../platform/api/api-type.ts'
import type { Dispatch, DispatchStore } from '../port.ts'

export const STATS_BUCKETS = ['hour', 'day'] as const
export type StatsBucket = (typeof STATS_BUCKETS)[number]

export type StatsPage = ApiType<'DispatchStats'>
type BucketStats = StatsPage['buckets'][number]

/** The executions that started from `fromMs` on and before `toMs`, in milliseconds since 1970. */
export type StatsQuery = {
  bucket: StatsBucket
  flow?: string | undefined
  fromMs: number
  toMs: number
  limit: number
  cursor?: string | undefined
}

export const BUCKET_MS: Record<StatsBucket, number> = { hour: 3_600_000, day: 86_400_000 }

const PAGE = 500
/** The most records that one request adds up. */
const MAX_SCANNED = 20_000

/**
 * Adds up the executions of each hour or day (UTC), newest first. One request reads a limited number of records: a bucket that it cannot finish
 * comes first on the next page, and a bucket that alone has more is partial.
 */
export async function statsOf(
  dispatches: Pick<DispatchStore, 'list'>,
  tenant: TenantId,
  query: StatsQuery,
): Promise<StatsPage> {
  const { bucket, limit, cursor } = query
  const [startMs = Infinity] = startOfPage(cursor, ['number']) ?? []
  const untilMs = Math.min(query.toMs, startMs)
  const { found, isComplete } = await readBuckets(dispatches, tenant, { ...query, untilMs })
  const isCut = found.length > limit || !isComplete
  const whole = isComplete ? found.slice(0, limit) : found.slice(0, Math.max(1, Math.min(limit, found.length - 1)))
  const isPartial = !isComplete && found.length === 1
  const buckets = whole.map((each) => shown(each, isPartial))
  const last = whole.at(-1)
  return { bucket, buckets, next_cursor: isCut && last ? encodeCursor([last.startMs]) : null }
}

type Bucket = {
  startMs: number
  sums: Omit<BucketStats, 'start' | 'p50_ms' | 'p95_ms' | 'is_partial'>
  durations: number[]
}

/** One bucket more than the limit, if there is one. It is not complete when the records were too many. */
async function readBuckets(
  dispatches: Pick<DispatchStore, 'list'>,
  tenant: TenantId,
  { bucket, flow, fromMs, untilMs, limit }: StatsQuery & { untilMs: number },
): Promise<{ found: Bucket[]; isComplete: boolean }> {
  const found: Bucket[] = []
  let cursor: string | undefined
  for (let scanned = 0; scanned < MAX_SCANNED; scanned += PAGE) {
    const query = { kind: 'run' as const, flow, sinceMs: fromMs, untilMs, limit: PAGE, cursor }
    const page = await dispatches.list(tenant, query)
    for (const dispatch of page.dispatches) {
      const startMs = startOf(Date.parse(dispatch.started_at), bucket)
      if (found.at(-1)?.startMs !== startMs) found.push({ startMs, sums: nothing(), durations: [] })
      const last = found.at(-1)
      if (last) add(last, dispatch)
    }
    if (page.next_cursor === null || found.length > limit) return { found, isComplete: true }
    cursor = page.next_cursor
  }
  return { found, isComplete: false }
}

export const startOf = (ms: number, bucket: StatsBucket): number =>
  Math.floor(ms / BUCKET_MS[bucket]) * BUCKET_MS[bucket]

const nothing = (): Bucket['sums'] => ({
  runs: 0,
  failed: 0,
  verdicts: { valid: 0, invalid: 0 },
  input_tokens: 0,
  output_tokens: 0,
  cost_usd: 0,
})

function add({ sums, durations }: Bucket, { status, duration_ms: ms, ...spent }: Dispatch): void {
  sums.runs++
  if (status === 'error' || status === 'rejected') sums.failed++
  if (status === 'ok') sums.verdicts.valid++
  if (status === 'invalid_output') sums.verdicts.invalid++
  sums.input_tokens += spent.input_tokens
  sums.output_tokens += spent.output_tokens
  sums.cost_usd += spent.cost_usd
  if (ms !== null && status !== 'rejected') durations.push(ms) // A refused execution has no duration.
}

function shown({ startMs, sums, durations }: Bucket, isPartial: boolean): BucketStats {
  const sorted = durations.toSorted((a, b) => a - b)
  return {
    start: new Date(startMs).toISOString(),
    ...sums,
    p50_ms: quantileOf(sorted, 0.5),
    p95_ms: quantileOf(sorted, 0.95),
    is_partial: isPartial,
  }
}

/** The smallest duration that this share of them does not exceed; `null` when there is none. */
const quantileOf = (sorted: readonly number[], share: number): number | null =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null
