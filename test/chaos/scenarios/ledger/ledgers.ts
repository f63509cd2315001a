import type { LedgerEntry, LedgerPage } from '../../../../shared/agent/customers/store/ledger.ts'
import { type Entry, now } from '../../history.ts'
import type { CustomerRun } from './customer-load.ts'

export type CustomerEntry = LedgerEntry & { customer: string }

/** Reads all entries of these customers through the API. Throws when a request fails. */
export async function readLedgers(
  url: string,
  customers: readonly string[],
  headers: Headers = {},
): Promise<CustomerEntry[]> {
  const ledgers = await Promise.all(customers.map((customer) => readLedger(url, customer, headers)))
  return ledgers.flat()
}

type Headers = Readonly<Record<string, string>>

const WITHIN_MS = 10_000

async function readLedger(url: string, customer: string, headers: Headers): Promise<CustomerEntry[]> {
  const entries: CustomerEntry[] = []
  let cursor: string | null = null
  do {
    const query = cursor === null ? '' : `&cursor=${cursor}`
    const path = `/customers/${customer}/ledger?limit=200${query}`
    const response: Response = await fetch(url + path, { headers, signal: AbortSignal.timeout(WITHIN_MS) })
    if (!response.ok) throw new Error(`the ledger of ${customer} was refused with ${response.status}`)
    const page = (await response.json()) as LedgerPage
    entries.push(...page.entries.map((entry) => ({ ...entry, customer })))
    cursor = page.next_cursor
  } while (cursor !== null)
  return entries
}

/** The final ledger entries as history entries. `before` holds the entries of an earlier time. */
export function toHistory(
  entries: readonly CustomerEntry[],
  before?: { at: number; entries: readonly CustomerEntry[] },
): Entry[] {
  const known = new Set(before?.entries.map(({ run_id }) => run_id))
  return entries.map(({ customer, seq, run_id: run }) => ({
    ...{ kind: 'ledger', t: now(), customer, seq, run },
    ...(before && !known.has(run) && { absentAt: before.at }),
  }))
}

/** Entries without a matching run: of an unknown prompt, a second one of the same prompt, or of another customer. */
export function strays(entries: readonly CustomerEntry[], runs: readonly CustomerRun[]): CustomerEntry[] {
  const byPrompt = new Map(runs.map((run) => [run.prompt, run]))
  const seen = new Set<string>()
  return entries.filter(({ input, customer, run_id }) => {
    const run = byPrompt.get(input)
    const isOurs = run?.customer === customer && (run.stream.run === run_id || run.stream.run === '')
    const isFirst = !seen.has(input)
    seen.add(input)
    return !isOurs || !isFirst
  })
}
