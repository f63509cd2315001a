import { type Entry, type Ledger, ofKind, type Violation } from '../history.ts'

/** N2: `done` of a customer's run means exactly one ledger entry; a ledger's numbers are 1 to n. */
export function checkLedgers(history: readonly Entry[]): Violation[] {
  const ledger = ofKind(history, 'ledger')
  return [
    ...checkDone(
      history,
      Map.groupBy(ledger, ({ run }) => run),
    ),
    ...checkNumbers(ledger),
  ]
}

function checkDone(history: readonly Entry[], byRun: ReadonlyMap<string, readonly Ledger[]>): Violation[] {
  const frames = ofKind(history, 'frame')
  const owed = new Set(ofKind(history, 'opened').flatMap(({ run, customer }) => (customer ? [run] : [])))
  for (const { run, code } of frames) if (code === 'customer_scope_fallback') owed.delete(run)
  const found: Violation[] = []
  const say = (what: string, evidence: Entry[]) => void found.push({ rule: 'N2', what, evidence })
  const done = new Map(frames.filter(({ event }) => event === 'done').map((frame) => [frame.run, frame]))
  for (const [run, frame] of done)
    if (owed.has(run) && !byRun.has(run)) say(`${run}: done, but not in the ledger`, [frame])
  for (const [run, entries] of byRun)
    if (entries.length > 1) say(`${run}: ${entries.length} ledger entries`, [...entries])
  return found
}

function checkNumbers(ledger: readonly Ledger[]): Violation[] {
  const byCustomer = Map.groupBy(ledger, ({ customer }) => customer)
  return [...byCustomer].flatMap(([customer, entries]) => {
    const ordered = entries.toSorted((a, b) => a.seq - b.seq)
    const at = ordered.findIndex(({ seq }, index) => seq !== index + 1)
    const evidence = ordered.slice(Math.max(0, at - 1), at + 1)
    return at < 0 ? [] : [{ rule: 'N2', what: `${customer}: ledger entry ${at + 1} is missing or double`, evidence }]
  })
}
