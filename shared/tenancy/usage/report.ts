import { decodeCursor, invalidCursor, toPage } from '../../kernel/cursor.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { DAY_MS, readTime } from '../../kernel/time.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import { divide, valuesOf } from './crossed.ts'
import { classesOf, quantile } from './durations.ts'
import {
  type Bucket,
  type Crossed,
  type Dimension,
  NO_KEY,
  pairOf,
  type UsageRange,
  type UsageRows,
  type UsageStore,
  type UsageSums,
} from './port.ts'
import { addInto, OTHER, type OwnRows, REST } from './sums.ts'

/** `from` and `to` are times in ISO 8601. */
export type UsageQuery = {
  by: Exclude<Dimension, 'crossed'>
  /** A second dimension by which the rows are divided, if `by` is one of `CROSSED`, too. */
  and?: Crossed | undefined
  /** The name of the pairs to show, if `by` is `metadata`. */
  name?: string | undefined
  bucket: Bucket
  from?: string | undefined
  to?: string | undefined
  limit: number
  cursor?: string | undefined
}

type Place = { start: string; rows: UsageRows }
type Row = Position & { sums: UsageSums }
type Division = Pick<UsageQuery, 'by' | 'and' | 'name'>
type UsageRow = ApiType<'UsageRow'>
export type UsagePage = ApiType<'UsageResponse'>
export type FlowFigures = ApiType<'FlowFigures'>

const BUCKET_MS: Record<Bucket, number> = { hour: 3_600_000, day: DAY_MS }
/** The time span that is shown without `from`. */
const SHOWN_MS: Record<Bucket, number> = { hour: DAY_MS, day: 30 * DAY_MS }
/** Hours or days that are read at a time. Each has at least one row. */
const READ_AT_ONCE = 50
/** Hours that the figures of a flow add up: this one, and those before. */
const HOURS = 24

/** Shows what a tenant has used, by hour or day (D21). */
export class UsageReport {
  readonly #store: Pick<UsageStore, 'read'>
  readonly #now: () => Date

  constructor(store: Pick<UsageStore, 'read'>, now = () => new Date()) {
    this.#store = store
    this.#now = now
  }

  /** Oldest first. Throws `invalid_request` for an invalid cursor or time. */
  async page(tenant: TenantId, { by, and, name, bucket, limit, cursor, ...times }: UsageQuery): Promise<UsagePage> {
    const { from, until } = this.#rangeOf(bucket, times)
    const last = cursor === undefined ? undefined : readCursor(cursor)
    const rows: Row[] = []
    let start = last === undefined || last.start < from ? from : last.start
    while (rows.length <= limit && start <= until) {
      const range = { bucket, from: start, until, limit: READ_AT_ONCE }
      const found = await this.#read(tenant, range, { by, and, name })
      for (const place of found) rows.push(...sorted(place, last))
      const end = found.length === READ_AT_ONCE ? found.at(-1) : undefined
      if (!end) break
      start = at(Date.parse(end.start) + BUCKET_MS[bucket])
    }
    const { page, next_cursor } = toPage(rows, limit, (row) => [row.start, row.key])
    return { rows: page.map((row) => shown(row, and !== undefined)), next_cursor }
  }

  /** The hours or days of a range, with the requested rows. */
  async #read(tenant: TenantId, range: Omit<UsageRange, 'by'>, { by, and, name }: Division): Promise<Place[]> {
    const found = await this.#store.read(tenant, { by, ...range })
    if (name !== undefined) return found.map(({ start, rows }) => ({ start, rows: ofName(name, rows) }))
    if (and === undefined) return found
    const last = found.at(-1)?.start ?? range.from
    const crossed = await this.#store.read(tenant, { ...range, by: 'crossed', until: last })
    const combinations = new Map(crossed.map(({ start, rows }) => [start, rows]))
    const pair = { by: by as Crossed, and }
    return found.map(({ start, rows }) => ({ start, rows: divide(rows, combinations.get(start) ?? new Map(), pair) }))
  }

  /** Returns the figures of each flow's recent runs, by the flow's name (D22.3). */
  async flows(tenant: TenantId): Promise<(flow: string) => FlowFigures> {
    const lastMs = Math.floor(this.#now().getTime() / BUCKET_MS.hour) * BUCKET_MS.hour
    const starts = Array.from({ length: HOURS }, (_, i) => at(lastMs - (HOURS - 1 - i) * BUCKET_MS.hour))
    const [from = '', until = ''] = [starts[0], starts.at(-1)]
    const found = await this.#store.read(tenant, { by: 'flow', bucket: 'hour', from, until, limit: HOURS })
    const hours = new Map(found.map(({ start, rows }) => [start, rows]))
    const all: OwnRows = new Map()
    for (const rows of hours.values()) addInto(all, rows, Number.POSITIVE_INFINITY)
    return (flow) => ({
      ...figuresOf(all.get(flow)),
      runs_by_hour: starts.map((start) => hours.get(start)?.get(flow)?.runs ?? 0),
    })
  }

  /** The starts of the first and the last hour or day. */
  #rangeOf(bucket: Bucket, { from, to }: Pick<UsageQuery, 'from' | 'to'>): { from: string; until: string } {
    const toMs = readTime('to', to) ?? this.#now().getTime() + 1
    const fromMs = readTime('from', from) ?? toMs - SHOWN_MS[bucket]
    if (fromMs >= toMs) throw invalidRequest('from must be before to', { param: '/from' })
    const startOf = (ms: number) => at(Math.floor(ms / BUCKET_MS[bucket]) * BUCKET_MS[bucket])
    return { from: startOf(fromMs), until: startOf(toMs - 1) }
  }
}

const at = (ms: number): string => new Date(ms).toISOString()

const figuresOf = (sums?: UsageSums): Omit<FlowFigures, 'runs_by_hour'> => ({
  runs: sums?.runs ?? 0,
  failed: sums?.failed ?? 0,
  invalid: sums?.invalid ?? 0,
  cost_usd: sums?.cost_usd ?? 0,
  p50_ms: sums ? quantile(sums.durations, 0.5) : null,
  p95_ms: sums ? quantile(sums.durations, 0.95) : null,
})

/** The rows of the pairs with this name, by their values. */
function ofName(name: string, rows: UsageRows): UsageRows {
  const prefix = pairOf([name, ''])
  const own = [...rows].filter(([key]) => key.startsWith(prefix))
  return new Map(own.map(([key, sums]) => [key.slice(prefix.length), sums]))
}

type Position = { start: string; key: string }

/** A cursor has the start of the hour or day and the key of the last row that the client has. */
function readCursor(cursor: string): Position {
  const [start, key] = decodeCursor(cursor, ['string', 'string'])
  const ms = Date.parse(start)
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== start) throw invalidCursor()
  return { start, key }
}

/** The rows of an hour or day by their keys, after the last one that the client has. */
function sorted({ start, rows }: Place, last: Position | undefined): Row[] {
  const after = last?.start === start ? last.key : undefined
  return [...rows]
    .filter(([key]) => after === undefined || key > after)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, sums]) => ({ start, key, sums }))
}

function shown({ start, key, sums: { durations, ...sums } }: Row, isPair: boolean): UsageRow {
  const values = isPair ? (valuesOf(key) ?? []) : [key]
  const rest = values.map((value) => value === REST)
  const keys = values.map((value, i) => (value === NO_KEY ? null : rest[i] ? OTHER : value))
  return {
    bucket: start,
    key: keys[0] ?? null,
    ...(isPair && { keys }),
    ...(rest.includes(true) && { rest }),
    ...sums,
    p50_ms: quantile(durations, 0.5) ?? 0,
    p95_ms: quantile(durations, 0.95) ?? 0,
    durations: classesOf(durations),
  }
}
