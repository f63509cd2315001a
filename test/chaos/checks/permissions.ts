import { type Decision, type Entry, ofKind, type Reply, type Violation } from '../history.ts'

/** `reply-not-honoured` and `allowed-without-reply`: one reply is answered ok, the engine follows it, and without one it calls no tool. */
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
    checkRequest(request, { winners: winners.get(request) ?? [], decisions: decisions.get(request) ?? [], failed }),
  )
}

type Case = { winners: readonly Reply[]; decisions: readonly Decision[]; failed: ReadonlySet<string> }

function checkRequest(request: string, { winners, decisions, failed }: Case): Violation[] {
  const evidence = [...winners, ...decisions]
  const [winner] = winners
  if (winners.length > 1)
    return [{ rule: 'reply-not-honoured', what: `${request}: ${winners.length} replies were answered ok`, evidence }]
  if (!winner) {
    const isOpen = decisions.some(({ isAllow }) => isAllow)
    return isOpen
      ? [
          {
            rule: 'allowed-without-reply',
            what: `${request}: the tool was called, and no reply had allowed it`,
            evidence,
          },
        ]
      : []
  }
  // The run may have failed between the reply and the call.
  if (decisions.length === 0)
    return failed.has(winner.run)
      ? []
      : [
          {
            rule: 'reply-not-honoured',
            what: `${request}: a reply was answered ok, and the engine decided nothing`,
            evidence,
          },
        ]
  const isHonoured = decisions.every(({ isAllow }) => isAllow === winner.isAllow)
  return isHonoured
    ? []
    : [
        {
          rule: 'reply-not-honoured',
          what: `${request}: the engine did not follow the reply that was answered ok`,
          evidence,
        },
      ]
}
