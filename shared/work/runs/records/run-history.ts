import { setImmediate } from 'node:timers/promises'
import type { RunFilter, RunPage, RunSearch, RunSummary } from '../../../cluster/commands/runs.ts'
import { writeCursor } from '../../../cluster/list-page.ts'
import { decodeCursor, encodeCursor, invalidCursor, type PageRequest } from '../../../kernel/cursor.ts'
import { AppError } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { DAY_MS } from '../../../kernel/time.ts'
import type { RunRecord } from './record.ts'
import type { RecordPosition, RunRecordStore } from './store.ts'

export type RunHistoryDeps = {
  store: Pick<RunRecordStore, 'get' | 'page' | 'frames'>
  /** The tenant's `audit.retention_days`. */
  retentionDays(tenant: TenantId): Promise<number>
  now?: () => number
  limits?: SearchLimits
}

/** The most records that one request reads, and the longest time. A page of a rare kind of runs may therefore be short; the next page continues. */
type SearchLimits = { rows: number; ms: number }

/** Lists the runs that are in the memory of processes. */
export type ListKnown = (filter: RunFilter) => Promise<RunPage>

/** A run that was read, and the place after it in the list. It is listed only if `isKept`; otherwise its retention has ended. */
type Row = { run: RunSummary; place: Place; isKept: boolean }
type Search = Pick<RunFilter, 'status'> & RunSearch
type Reading = Search & { pageSize: number; listKnown: ListKnown; onIncomplete(): void }

const LIMITS: SearchLimits = { rows: 50_000, ms: 2_000 }
const PAGE = 200

/** The runs of a tenant: those in the memory of processes, and the records that the tenant still keeps. */
export class RunHistory {
  readonly #deps: RunHistoryDeps

  constructor(deps: RunHistoryDeps) {
    this.#deps = deps
  }

  async get(tenant: TenantId, runId: string): Promise<RunRecord | undefined> {
    const [found, since] = await Promise.all([this.#deps.store.get(tenant, runId), this.#keptSince(tenant)])
    return found && found.ended_at >= since ? found : undefined
  }

  /** The frames of a run, without its deltas; `undefined` when its frames are not kept. */
  frames(tenant: TenantId, runId: string): Promise<string | undefined> {
    return this.#deps.store.frames(tenant, runId)
  }

  /** Throws `invalid_request` for an invalid cursor. `incomplete`: runs are missing because a worker or the store did not answer. */
  async list(tenant: TenantId, listKnown: ListKnown, request: PageRequest & Search): Promise<RunPage> {
    const { limit, cursor, ...search } = request
    let isIncomplete = false
    const onIncomplete = () => void (isIncomplete = true)
    const pageSize = Object.keys(search).length > 0 ? PAGE : limit + 1
    const runs: RunSummary[] = []
    const { place: begin, listed: listedBefore } = readPlace(cursor)
    const listed = new ListedRuns(listedBefore)
    const page = (next: Place | undefined): RunPage => ({
      runs,
      next_cursor: next ? writePlace(next, listed.text) : null,
      ...(isIncomplete && { incomplete: true as const }),
    })
    const { rows, ms } = this.#deps.limits ?? LIMITS
    const untilMs = performance.now() + ms
    let read = 0
    let last = begin
    const reading = { ...search, pageSize, listKnown, onIncomplete }
    for await (const { run, place, isKept } of this.#rows(tenant, begin, reading)) {
      const isWanted = isKept && isFound(run, search) && !listed.has(run.run_id)
      if (runs.length === limit && isWanted) return page(last)
      if (isWanted) runs.push(run)
      if (isWanted && place.part !== 'records') listed.add(run.run_id)
      last = place
      if (++read === rows || (read % PAGE === 0 && performance.now() >= untilMs)) return page(last)
    }
    return page(undefined)
  }

  async *#rows(tenant: TenantId, begin: Place, reading: Reading): AsyncGenerator<Row, void, undefined> {
    if (begin.part === 'live') yield* knownRows(begin, reading)
    if (reading.status === 'running' || reading.status === 'waiting') return
    if (begin.part === 'live') yield* knownRows({ part: 'unrecorded', cursor: undefined }, reading)
    if (begin.part === 'unrecorded') yield* knownRows(begin, reading)
    try {
      yield* this.#records(tenant, begin.part === 'records' ? begin.after : undefined, reading)
    } catch (cause) {
      if (begin.part === 'records' || !isAway(cause)) throw cause
      reading.onIncomplete()
    }
  }

  async *#records(
    tenant: TenantId,
    after: RecordPosition | undefined,
    { since, until, pageSize }: Reading,
  ): AsyncGenerator<Row, void, undefined> {
    const keptSince = await this.#keptSince(tenant)
    let position = after ?? (until === undefined ? undefined : ([until, ''] as const))
    for (;;) {
      const found = await this.#deps.store.page(tenant, { after: position, since, limit: pageSize })
      for (const run of found) {
        position = [run.started_at, run.run_id]
        yield { run, place: { part: 'records', after: position }, isKept: run.ended_at >= keptSince }
      }
      if (found.length < pageSize) return
      await setImmediate() // A store in this process reads without a pause, so other work gets its turn between two pages.
    }
  }

  /** A run that ended before this time is no longer kept, even if the store still has it. */
  async #keptSince(tenant: TenantId): Promise<string> {
    const { retentionDays, now = Date.now } = this.#deps
    return new Date(now() - (await retentionDays(tenant)) * DAY_MS).toISOString()
  }
}

async function* knownRows(
  { part, cursor: begin }: Place & { part: KnownPart },
  { status, pageSize, listKnown, onIncomplete }: Reading,
): AsyncGenerator<Row, void, undefined> {
  for (let cursor: string | null | undefined = begin; cursor !== null; ) {
    const where = { ...(cursor !== undefined && { cursor }), ...(status !== undefined && { status }) }
    const page: RunPage = await listKnown({ limit: pageSize, among: part, ...where })
    if (page.incomplete) onIncomplete()
    for (const run of page.runs) {
      const position = writeCursor({ startedMs: Date.parse(run.started_at), id: run.run_id })
      yield { run, place: { part, cursor: position }, isKept: true }
    }
    cursor = page.next_cursor
  }
}

export const isAway = (cause: unknown): boolean => cause instanceof AppError && cause.kind === 'unavailable'

const EQUAL = ['status', 'kind', 'code', 'session_id', 'customer_id', 'subject', 'model', 'flow'] as const
const SEARCHED = ['run_id', 'title', 'flow', 'step_id', 'session_id', 'customer_id', 'subject', 'model'] as const

export function isFound(run: RunSummary, search: Pick<RunFilter, 'status'> & RunSearch): boolean {
  const { since, until, min_cost, metadata = {}, q } = search
  if (EQUAL.some((field) => search[field] !== undefined && search[field] !== run[field])) return false
  if (Object.entries(metadata).some(([key, value]) => run.metadata?.[key] !== value)) return false
  if (since !== undefined && run.started_at < since) return false
  if (until !== undefined && run.started_at >= until) return false
  if (min_cost !== undefined && (run.cost_usd ?? 0) < min_cost) return false
  return hasTaken(run, search) && (q === undefined || isNamed(run, q.toLowerCase()))
}

/** A run that continues has no duration yet. */
function hasTaken({ started_at, ended_at }: RunSummary, { min_ms, max_ms }: RunSearch): boolean {
  if (min_ms === undefined && max_ms === undefined) return true
  if (ended_at === null) return false
  const ms = Date.parse(ended_at) - Date.parse(started_at)
  return ms >= (min_ms ?? 0) && ms <= (max_ms ?? Infinity)
}

const isNamed = (run: RunSummary, text: string): boolean =>
  [...SEARCHED.map((field) => run[field]), ...Object.values(run.metadata ?? {})].some((name) =>
    name?.toLowerCase().includes(text),
  )

/** The list of runs has three parts: the runs that continue, the ended runs without a record, and the records. */
type Place = { part: KnownPart; cursor: string | undefined } | { part: 'records'; after: RecordPosition | undefined }
type KnownPart = NonNullable<RunFilter['among']>

/** The cursor of the page that begins after a place. `listed` names runs of the earlier pages. */
const writePlace = (place: Place, listed: string): string =>
  place.part === 'records'
    ? encodeCursor([place.part, ...(place.after ?? []), listed])
    : encodeCursor([place.part, place.cursor ?? '', listed])

/** Throws `invalid_request` for a cursor that no list has returned. */
function readPlace(cursor: string | undefined): { place: Place; listed: string } {
  if (cursor === undefined) return { place: { part: 'live', cursor: undefined }, listed: '' }
  try {
    const [part, known, listed] = decodeCursor(cursor, ['string', 'string', 'string'])
    if (part === 'live' || part === 'unrecorded') return { place: { part, cursor: known }, listed }
  } catch {
    const [part, startedAt, runId, listed] = decodeCursor(cursor, ['string', 'string', 'string', 'string'])
    if (part === 'records') return { place: { part, after: [startedAt, runId] }, listed }
  }
  throw invalidCursor()
}

/** The most runs that a cursor names: those of two pages of the largest size. They fit into the longest cursor that a request may have. */
const MAX_NAMED = 400
/** The last digits of a run's id, which are random: enough to tell it from the runs that its tenant keeps. */
const DIGITS = 10

/**
 * The runs that were listed before they had a record. A cursor names them, because a run that ends between two pages would be listed again
 * as a record. If there are too many, the first ones are forgotten, and may be listed twice.
 */
class ListedRuns {
  readonly #names: Set<string>

  /** `text` comes from the cursor of an earlier page. */
  constructor(text: string) {
    const digits = Buffer.from(text, 'base64url').toString('hex')
    this.#names = new Set(digits.match(NAMES))
  }

  add(runId: string): void {
    this.#names.add(nameOf(runId))
  }

  has(runId: string): boolean {
    return this.#names.has(nameOf(runId))
  }

  get text(): string {
    return Buffer.from([...this.#names].slice(-MAX_NAMED).join(''), 'hex').toString('base64url')
  }
}

const NAMES = new RegExp(`.{${DIGITS}}`, 'g')

const nameOf = (runId: string): string => runId.slice(-DIGITS)
