import type { Schema } from '../../../../shared/client/api.ts'
import { get, pace } from '../../api/engine.ts'
import { monthOf, type Span, startsOf } from './spans.ts'
import type { Row } from './sums.ts'

/** Pages of rows that are read. */
const MOST_PAGES = 10

/** `totals` covers all runs of the span, `before` those of the span before it, and `month` those of the month (UTC) up to now. */
export type Usage = {
  rows: readonly Row[]
  /** There are more rows than were read. */
  isCut: boolean
  totals: readonly Row[]
  before: readonly Row[]
  month: readonly Row[]
}

/** Reads the rows of a division. The totals are computed from the rows by kind: there are few kinds, and each run has exactly one. */
export async function readUsage(by: string, span: Span, now: number): Promise<Usage> {
  const { bucket } = span
  const starts = startsOf(span, now)
  const month = monthOf(now).from
  const since = (rows: readonly Row[], time: number) => rows.filter((row) => Date.parse(row.bucket) >= time)
  const kinds = (of: Span['bucket'], from: number) => {
    pace().more()
    return readRows({ by: 'kind', bucket: of, from: isoOf(from) })
  }
  const [{ rows, isCut }, all, days] = await Promise.all([
    by.endsWith('.') ? NO_ROWS : readRows({ by, bucket, from: isoOf(starts.from) }),
    kinds(bucket, bucket === 'day' ? Math.min(starts.before, month) : starts.before),
    bucket === 'hour' ? kinds('day', month) : undefined,
  ])
  const spans = since(all.rows, starts.before)
  const totals = since(spans, starts.from)
  const before = spans.filter((row) => !totals.includes(row))
  return { rows, isCut, totals, before, month: since((days ?? all).rows, month) }
}

/** The rows if the name of the metadata key is not given. */
const NO_ROWS = { rows: [], isCut: false } as const

export const isoOf = (time: number): string => new Date(time).toISOString()

async function readRows(query: Record<string, string>): Promise<{ rows: Row[]; isCut: boolean }> {
  const rows: Row[] = []
  let cursor: string | undefined
  for (let page = 0; page < MOST_PAGES; page++) {
    if (page > 0) pace().more()
    const answer = await get<Schema<'UsageResponse'>>('/usage', { ...query, limit: 200, cursor })
    rows.push(...answer.rows)
    cursor = answer.next_cursor ?? undefined
    if (cursor === undefined) break
  }
  return { rows, isCut: cursor !== undefined }
}
