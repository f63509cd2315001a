import { setTimeout as sleep } from 'node:timers/promises'
import { decodeCursor, encodeCursor } from '../cursor.ts'
import { AppError } from '../errors.ts'
import { createKeyedQueue } from '../keyed-queue.ts'
import type { TenantId } from '../tenant.ts'
import { appendNext } from './append.ts'
import type { Collection, CollectionSpec, Store, Stored } from './port.ts'
import { storeUnavailable } from './unavailable.ts'

export const LEDGER: CollectionSpec = {
  name: 'ledger',
  key: ['customer_id', 'seq'],
  unique: [['customer_id', 'run_id']],
  order: { within: ['customer_id'], by: ['seq'], direction: 'descending' },
}

/** One finished run of a customer (D4.14). */
export type LedgerEntry = { seq: number; run_id: string; input: string; output: string; timestamp: string }
export type LedgerPage = { entries: LedgerEntry[]; next_cursor: string | null }

export type FinishedRun = Pick<LedgerEntry, 'run_id' | 'input' | 'output'> & {
  /**
   * For how long from now this process may still write for the run, in ms: what its lease leaves, 0 when the run is no longer
   * its own. Asked before every write; one that is held up is not sent later than that (reliability.md rule 4).
   */
  mayWriteMs?: () => number
}

/** A customer's permanent record. Entries are appended and never changed: no code path does (design §7.3). */
export interface Ledger {
  /**
   * Resolves with the entry's number once it is stored; with the number it has when the run is in it already. Throws
   * `unavailable` when the store is away for 5 s, or the process may no longer write: the entry may then be in it or not.
   */
  append(tenant: TenantId, customerId: string, run: FinishedRun): Promise<number>
  /** The newest `count` entries, newest first; fewer when these are very long. */
  last(tenant: TenantId, customerId: string, count: number): Promise<LedgerEntry[]>
  /** Newest first; may hold fewer than `limit` although more follow. Throws `invalid_request` for a cursor that is none. */
  page(tenant: TenantId, customerId: string, query: { limit: number; cursor?: string | undefined }): Promise<LedgerPage>
}

/** Reliability.md rule 6: so long a write is tried again. */
const PATIENCE_MS = 5_000
const RETRY_MS = 200
/** An entry has to fit into the store: of a longer text the end is cut. */
const MAX_CHARS = 1_000_000
const CUT = '\n[cut]'
/** A page is read in portions, and ends after the one with which it became long. */
const PORTION = 10
const MAX_PAGE_CHARS = 2_000_000

export function createLedger(store: Store, { patienceMs = PATIENCE_MS, now = () => new Date() } = {}): Ledger {
  const entries = store.collection(LEDGER)
  // Within a process nobody races for the next number.
  const inLine = createKeyedQueue()
  return {
    append(tenant, customerId, run) {
      const deadline = performance.now() + patienceMs
      const timestamp = now().toISOString()
      return inLine(`${tenant} ${customerId}`, () =>
        untilStored({ run, deadline }, (withinMs) => write(entries, tenant, { customerId, run, timestamp, withinMs })),
      )
    },
    async last(tenant, customerId, count) {
      return (await readPage(entries, tenant, { customerId, limit: count })).entries
    },
    page: (tenant, customerId, query) => readPage(entries, tenant, { customerId, ...query }),
  }
}

/** Tries again while the store is away, the patience lasts and the run is this process's. */
async function untilStored(
  { run, deadline }: { run: FinishedRun; deadline: number },
  attempt: (withinMs: () => number) => Promise<number>,
): Promise<number> {
  const withinMs = () => Math.min(run.mayWriteMs?.() ?? Infinity, deadline - performance.now())
  for (let failure: unknown; ; await sleep(RETRY_MS)) {
    if (run.mayWriteMs && run.mayWriteMs() <= 0) throw fenced()
    if (withinMs() <= 0) throw failure ?? storeUnavailable('others of the line have used up the time')
    try {
      return await attempt(withinMs)
    } catch (cause) {
      if (!isAway(cause)) throw cause
      failure = cause
    }
  }
}

type Attempt = { customerId: string; run: FinishedRun; timestamp: string; withinMs: () => number }

function write(entries: Collection, tenant: TenantId, attempt: Attempt): Promise<number> {
  const { customerId: customer_id, run, timestamp, withinMs } = attempt
  const { run_id } = run
  return appendNext(entries, tenant, {
    line: { customer_id },
    same: { customer_id, run_id },
    doc: { run_id, input: cut(run.input), output: cut(run.output), timestamp },
    options: () => ({ withinMs: withinMs() }),
  })
}

const isAway = (cause: unknown) => cause instanceof AppError && cause.kind === 'unavailable'

const fenced = () =>
  new AppError('unavailable', 'this process may no longer write for the run; send the prompt again', { code: 'fenced' })

const cut = (text: string) => (text.length <= MAX_CHARS ? text : text.slice(0, MAX_CHARS) + CUT)

type EntryQuery = { customerId: string; limit: number; cursor?: string | undefined }

async function readPage(entries: Collection, tenant: TenantId, query: EntryQuery): Promise<LedgerPage> {
  const where = { customer_id: query.customerId }
  const page: LedgerEntry[] = []
  let after = query.cursor === undefined ? undefined : decodeCursor(query.cursor, ['number'])
  for (let chars = 0; page.length < query.limit && chars < MAX_PAGE_CHARS; ) {
    const limit = Math.min(PORTION, query.limit - page.length)
    const found = (await entries.page(tenant, { where, limit, ...(after && { after }) })).map(toEntry)
    for (const { input, output } of found) chars += input.length + output.length
    page.push(...found)
    after = found.slice(-1).map(({ seq }) => seq)
    if (found.length < limit) break
  }
  // Numbers have no holes: whether anything follows is known from the last one.
  const end = page.at(-1)?.seq ?? 1
  return { entries: page, next_cursor: end > 1 ? encodeCursor([end]) : null }
}

/** In D4.14's order of fields. */
function toEntry({ doc }: Stored): LedgerEntry {
  const { seq, run_id, input, output, timestamp } = doc as LedgerEntry
  return { seq, run_id, input, output, timestamp }
}
