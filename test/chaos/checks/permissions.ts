import { type Decision, type Entry, ofKind, type Reply, type Violation } from '../history.ts'

/** N6 and I9: one reply wins, the engine does what it says, and without a winner nothing is allowed. */
export function checkPermissions(history: readonly Entry[]): Violation[] {
  const winners = Map.groupBy(
    ofKind(history, 'reply').filter(({ status }) => status === 200),
    ({ request }) => request,
  )
  const decisions = Map.groupBy(ofKind(history, 'decision'), ({ request }) => request)
  const failed = new Set(
    ofKind(history, 'frame')
      .filter(({ isTerminal, event }) => isTerminal && event === 'error')
      .map(({ run }) => run),
  )
  const requests = new Set([...winners.keys(), ...decisions.keys()])
  return [...requests].flatMap((request) =>
    judge(request, { winners: winners.get(request) ?? [], decisions: decisions.get(request) ?? [], failed }),
  )
}

type Case = { winners: readonly Reply[]; decisions: readonly Decision[]; failed: ReadonlySet<string> }

function judge(request: string, { winners, decisions, failed }: Case): Violation[] {
  const evidence = [...winners, ...decisions]
  const [winner] = winners
  if (winners.length > 1) return [{ rule: 'N6', what: `${request}: ${winners.length} replies were told ok`, evidence }]
  if (!winner) {
    const isOpen = decisions.some(({ isAllow }) => isAllow)
    return isOpen ? [{ rule: 'I9', what: `${request}: allowed, and nobody had allowed it`, evidence }] : []
  }
  // The run may have failed between the reply and the call.
  if (decisions.length === 0)
    return failed.has(winner.run) ? [] : [{ rule: 'N6', what: `${request}: told ok, and nothing came of it`, evidence }]
  const isHonoured = decisions.every(({ isAllow }) => isAllow === winner.isAllow)
  return isHonoured ? [] : [{ rule: 'N6', what: `${request}: the engine did not do what was told ok`, evidence }]
}
