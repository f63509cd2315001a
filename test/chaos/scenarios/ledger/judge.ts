import type { Guarantee } from '../../../harness/guarantee.ts'
import { allOf, none } from '../../figures.ts'
import type { Entry } from '../../history.ts'
import { tally, wordsFor } from '../../load.ts'
import type { CustomerLoad, CustomerRun } from './customer-load.ts'
import { type CustomerEntry, readLedgers, strays, toHistory } from './ledgers.ts'

/** What became of the runs of one load, and of the ledgers of its customers. */
export type Outcome = { load: CustomerLoad; entries: readonly CustomerEntry[] }

/** Reads the ledgers of the load's customers at `url`, and adds them to the history. */
export async function settle(load: CustomerLoad, url: string, history: Entry[]): Promise<Outcome> {
  const entries = await readLedgers(url, load.customers)
  history.push(...toHistory(entries))
  return { load, entries }
}

/** In few words. */
export function describe({ load, entries }: Outcome): string {
  const stateless = load.runs.filter((run) => load.isStateless(run)).length
  const ends = tally(load.runs.map(({ ended }) => ended))
  return `${load.name}: ${ends} (of these ${stateless} stateless); ${entries.length} entries`
}

/** What the history says of all loads together is the checker's to judge. */
export function judge({ load, entries }: Outcome): Guarantee[] {
  const recorded = new Set(entries.map(({ run_id }) => run_id))
  const done = load.runs.filter((run) => wordsFor(run.ended) === 'done' && !load.isStateless(run))
  const never = load.runs.filter(({ stream, ended }) => stream.run !== '' && !ended.terminal && ended.how === 'ended')
  const named = (title: string) => `${load.name}: ${title}`
  return [
    allOf(named('runs done that are in the ledger'), done.filter(isIn(recorded)).length, done.length),
    none(named('entries that no run accounts for'), strays(entries, load.runs).length, `of ${entries.length}`),
    none(named('streams without an end'), never.length, `of ${load.runs.length}`),
  ]
}

const isIn = (recorded: ReadonlySet<string>) => (run: CustomerRun) => recorded.has(run.stream.run)
