import type { RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import { allOf, type Guarantee, none } from '../../../harness/guarantee.ts'
import type { Entry } from '../../history.ts'
import { describeEnd, tally } from '../../load.ts'
import type { CustomerLoad, CustomerRun } from './customer-load.ts'
import { type CustomerEntry, readLedgers, strays, toHistory } from './ledgers.ts'
import { readRecords, recordGuarantees } from './run-records.ts'

/** A finished load, the ledger entries of its customers, and what `GET /runs` lists. */
export type Outcome = {
  load: CustomerLoad
  entries: readonly CustomerEntry[]
  listed: readonly RunSummary[]
  /** When a process was killed that alone knew how its runs ended. */
  killsAlone: readonly number[]
}

type Read = { url: string; history: Entry[]; killsAlone?: readonly number[] }

/** Reads the ledgers of the load's customers and adds them to the history. */
export async function readOutcome(load: CustomerLoad, { url, history, killsAlone = [] }: Read): Promise<Outcome> {
  const entries = await readLedgers(url, load.customers)
  history.push(...toHistory(entries))
  return { load, entries, listed: await readRecords(url, { runs: load.runs, killsAlone }), killsAlone }
}

/** One line for the progress output. */
export function describeOutcome({ load, entries }: Outcome): string {
  const stateless = load.runs.filter((run) => load.isStateless(run)).length
  const ends = tally(load.runs.map(({ ended }) => ended))
  return `${load.name}: ${ends} (of these ${stateless} stateless); ${entries.length} entries`
}

/** The guarantees of one load. The checker examines the history of all loads together. */
export function guaranteesOf({ load, entries, listed, killsAlone }: Outcome): Guarantee[] {
  const recorded = new Set(entries.map(({ run_id }) => run_id))
  const done = load.runs.filter((run) => describeEnd(run.ended) === 'done' && !load.isStateless(run))
  const never = load.runs.filter(({ stream, ended }) => stream.run !== '' && !ended.terminal && ended.how === 'ended')
  const named = (title: string) => `${load.name}: ${title}`
  return [
    allOf(named('runs done that are in the ledger'), done.filter(isRecorded(recorded)).length, done.length),
    none(named('entries without a matching run'), strays(entries, load.runs).length, `of ${entries.length}`),
    none(named('streams without an end'), never.length, `of ${load.runs.length}`),
    ...recordGuarantees(load.name, { runs: load.runs, listed, killsAlone }),
  ]
}

const isRecorded = (recorded: ReadonlySet<string>) => (run: CustomerRun) => recorded.has(run.stream.run)
