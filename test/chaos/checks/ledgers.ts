import { type Entry, type Frame, isGatewayMade, type Ledger, ofKind, type Violation } from '../history.ts'
import type { Limits } from '../limits.ts'

/**
 * `ledger-mismatch`: `done` of a customer's run means exactly one ledger entry, a run that ended otherwise has none, and a
 * ledger's numbers are 1 to n. `extra-effect`: nothing is written for a run after its worker was lost.
 */
export function checkLedgers(history: readonly Entry[], limits: Limits): Violation[] {
  const ledger = ofKind(history, 'ledger')
  const runs = runsIn(history)
  return [
    ...checkDone(runs, new Set(ledger.map(({ run }) => run))),
    ...ledger.flatMap((entry) => checkEntry(entry, runs.get(entry.run), limits)),
    ...checkOnce(Map.groupBy(ledger, ({ run }) => run)),
    ...checkNumbers(ledger),
  ]
}

/** A customer's run: whether a warning said that it is not recorded, and the terminal frames of its streams. */
type CustomerRun = { isStateless: boolean; ends: Frame[] }

function runsIn(history: readonly Entry[]): Map<string, CustomerRun> {
  const runs = new Map<string, CustomerRun>()
  for (const { run, customer } of ofKind(history, 'opened')) {
    if (customer) runs.set(run, { isStateless: false, ends: [] })
  }
  for (const frame of ofKind(history, 'frame')) {
    const known = runs.get(frame.run)
    if (known && frame.code === 'customer_scope_fallback') known.isStateless = true
    if (known && frame.isTerminal) known.ends.push(frame)
  }
  return runs
}

const isGood = ({ event }: Frame) => event !== 'error'

function checkDone(runs: ReadonlyMap<string, CustomerRun>, recorded: ReadonlySet<string>): Violation[] {
  return [...runs].flatMap(([run, { isStateless, ends }]): Violation[] => {
    const end = ends.find(isGood)
    if (!end || isStateless || recorded.has(run)) return []
    return [{ rule: 'ledger-mismatch', what: `${run}: ${end.event}, but not in the ledger`, evidence: [end] }]
  })
}

/** Codes of a stream that ended before the run's own end: the run may be in the ledger nevertheless. */
const CUT = new Set(['worker_lost', 'worker_draining', 'storage_unavailable'])
const isCut = (end: Frame) => isGatewayMade(end) || CUT.has(end.code ?? '')

function checkEntry(entry: Ledger, run: CustomerRun | undefined, { slackMs }: Limits): Violation[] {
  if (!run) return []
  const found: Violation[] = []
  const say = (rule: 'ledger-mismatch' | 'extra-effect', what: string, ...evidence: Entry[]) =>
    void found.push({ rule, what: `${entry.run}: ${what}`, evidence: [...evidence, entry] })
  const { isStateless, ends } = run
  if (isStateless) say('ledger-mismatch', 'in the ledger, although a warning said that it is not recorded')
  const failed = ends.some(isGood) ? undefined : ends.find((end) => !isCut(end))
  if (failed) say('ledger-mismatch', `in the ledger, although it ended with ${failed.code}`, failed)
  const lost = ends.find(({ code }) => code === 'worker_lost')
  if (lost && (entry.absentAt ?? 0) > lost.t + slackMs) say('extra-effect', 'written after its worker was lost', lost)
  return found
}

function checkOnce(byRun: ReadonlyMap<string, readonly Ledger[]>): Violation[] {
  return [...byRun].flatMap(([run, entries]): Violation[] =>
    entries.length > 1
      ? [{ rule: 'ledger-mismatch', what: `${run}: ${entries.length} ledger entries`, evidence: [...entries] }]
      : [],
  )
}

function checkNumbers(ledger: readonly Ledger[]): Violation[] {
  const byCustomer = Map.groupBy(ledger, ({ customer }) => customer)
  return [...byCustomer].flatMap(([customer, entries]) => {
    const ordered = entries.toSorted((a, b) => a.seq - b.seq)
    const at = ordered.findIndex(({ seq }, index) => seq !== index + 1)
    const evidence = ordered.slice(Math.max(0, at - 1), at + 1)
    return at < 0
      ? []
      : [{ rule: 'ledger-mismatch', what: `${customer}: ledger entry ${at + 1} is missing or duplicate`, evidence }]
  })
}
