import { setTimeout as sleep } from 'node:timers/promises'
import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import { encodeCursor, startOfPage } from '../../../kernel/cursor.ts'
import { AppError, hasKind } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { truncate } from '../../../kernel/text.ts'
import { appendNext } from '../../../platform/store/append.ts'
import type { Collection, CollectionSpec, Store, Stored } from '../../../platform/store/port.ts'
import { storeUnavailable } from '../../../platform/store/unavailable.ts'

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
   * The time until which this process may write for the run, by `performance.now()`: the end of its lease, or `-Infinity` when the run
   * is no longer its own. Read right before each write is sent. A write that reaches the store later is refused, because another worker
   * may have taken over the customer by then.
   */
  mayWriteUntil?: () => number
}

/** A customer's permanent record. Entries are only appended; no code changes or deletes them. */
export interface Ledger {
  /**
   * Returns the entry's number once it is stored; if the run is already stored, the number that it has. Throws `unavailable`
   * when the store does not answer for 5 s, and with the code `fenced` when the process may no longer write; the entry may
   * then be stored or not.
   */
  append(tenant: TenantId, customerId: string, run: FinishedRun): Promise<number>
  /** The newest `count` entries, newest first; fewer when they are very long. */
  last(tenant: TenantId, customerId: string, count: number): Promise<LedgerEntry[]>
  /** Newest first. May hold fewer than `limit` entries although more follow. Throws `invalid_request` for an invalid cursor. */
  page(tenant: TenantId, customerId: string, query: { limit: number; cursor?: string | undefined }): Promise<LedgerPage>
}

/** How long a write is tried again: an outage of the store that is shorter than this loses no entry. */
const RETRY_FOR_MS = 5_000
const RETRY_EVERY_MS = 200
/** A longer text is cut (code points), so that an entry always fits into the store. */
const MAX_CHARS = 1_000_000
const CUT = '\n[cut]'
/** A page is read in growing batches, because few long entries fill it. It ends with the entry that makes its JSON longer than this. */
const FIRST_BATCH = 2
const BATCH = 10
const MAX_PAGE_BYTES = 512 * 1024

export function createLedger(store: Store, { retryForMs = RETRY_FOR_MS, now = () => new Date() } = {}): Ledger {
  const entries = store.collection(LEDGER)
  // Appends of one customer run one after another, so that they do not compete for the next number within this process.
  const queue = createKeyedQueue()
  return {
    append(tenant, customerId, run) {
      const deadline = performance.now() + retryForMs
      const timestamp = now().toISOString()
      return queue.run(`${tenant} ${customerId}`, () =>
        retryUntilStored({ run, deadline }, (withinMs) =>
          write(entries, tenant, { customerId, run, timestamp, withinMs }),
        ),
      )
    },
    async last(tenant, customerId, count) {
      return (await readPage(entries, tenant, { customerId, limit: count, firstBatch: BATCH })).entries
    },
    page: (tenant, customerId, query) => readPage(entries, tenant, { customerId, ...query, firstBatch: FIRST_BATCH }),
  }
}

/** Tries again while the store does not answer, until the deadline or until the process may no longer write for the run. */
async function retryUntilStored(
  { run, deadline }: { run: FinishedRun; deadline: number },
  attempt: (withinMs: () => number) => Promise<number>,
): Promise<number> {
  const { mayWriteUntil = () => Infinity } = run
  const withinMs = () => deadline - performance.now()
  for (let failure: unknown; ; await sleep(RETRY_EVERY_MS)) {
    if (performance.now() >= mayWriteUntil()) throw fenced()
    if (withinMs() <= 0) throw failure ?? storeUnavailable('earlier appends of the customer used up the time')
    try {
      return await attempt(withinMs)
    } catch (cause) {
      if (!hasKind(cause, 'unavailable')) throw cause
      failure = cause
    }
  }
}

type Attempt = { customerId: string; run: FinishedRun; timestamp: string; withinMs: () => number }

function write(entries: Collection, tenant: TenantId, attempt: Attempt): Promise<number> {
  const { customerId: customer_id, run, timestamp, withinMs } = attempt
  const { run_id, mayWriteUntil } = run
  const [input, output] = [truncate(run.input, MAX_CHARS, CUT), truncate(run.output, MAX_CHARS, CUT)]
  return appendNext(entries, tenant, {
    within: { customer_id },
    identity: { customer_id, run_id },
    doc: { run_id, input, output, timestamp },
    writeOptions: () => ({ withinMs: withinMs(), ...(mayWriteUntil && { mayWriteUntil }) }),
  })
}

const fenced = () =>
  new AppError('unavailable', 'this process may no longer write for the run; send the prompt again', { code: 'fenced' })

type EntryQuery = { customerId: string; limit: number; cursor?: string | undefined; firstBatch: number }

async function readPage(entries: Collection, tenant: TenantId, query: EntryQuery): Promise<LedgerPage> {
  const where = { customer_id: query.customerId }
  const page: LedgerEntry[] = []
  let after = startOfPage(query.cursor, ['number'])
  let batch = query.firstBatch
  for (let bytes = 0; page.length < query.limit && bytes < MAX_PAGE_BYTES; batch = Math.min(2 * batch, BATCH)) {
    const limit = Math.min(batch, query.limit - page.length)
    const found = await entries.page(tenant, { where, limit, after })
    for (const entry of found.map(toEntry)) {
      if (bytes >= MAX_PAGE_BYTES) break
      bytes += Buffer.byteLength(JSON.stringify(entry)) // Escaping makes a character up to six times as long.
      page.push(entry)
      after = [entry.seq]
    }
    if (found.length < limit) break
  }
  // The numbers have no gaps, so the last one shows whether older entries follow.
  const oldestSeq = page.at(-1)?.seq ?? 1
  return { entries: page, next_cursor: oldestSeq > 1 ? encodeCursor([oldestSeq]) : null }
}

/** Keeps the fields in the order of D4.14. */
function toEntry({ doc }: Stored): LedgerEntry {
  const { seq, run_id, input, output, timestamp } = doc as LedgerEntry
  return { seq, run_id, input, output, timestamp }
}
