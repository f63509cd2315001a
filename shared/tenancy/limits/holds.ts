import { type BudgetHolds, type HoldAnswer, type HoldRequest, NOTHING_SPENT, type Spent } from './port.ts'

/**
 * Decides what a process may hold back. A budget with less left than the next call may cost still allows it when nothing else is at work:
 * the call that reaches a budget may exceed it (D11.2).
 */
function decideHold({ limit, hold }: HoldRequest, spent: Spent, others: Spent): HoldAnswer {
  const fits = ({ tokens, costUsd }: Spent) =>
    spent.tokens + others.tokens + tokens <= limit.tokens && spent.costUsd + others.costUsd + costUsd <= limit.costUsd
  const isAlone = hold.atWork.tokens === 0 && others.tokens === 0 // Each call has tokens, not each has a price.
  if (spent.tokens >= limit.tokens || spent.costUsd >= limit.costUsd) return { granted: 'none', spent }
  if (fits(hold.reserve)) return { granted: 'reserve', spent }
  return { granted: isAlone || fits(hold.next) ? 'next' : 'atWork', spent }
}

/** The holds of the standalone form, whose process is the only one. */
export const SINGLE_PROCESS: BudgetHolds = {
  ask: async (_tenant, request) => decideHold(request, request.known, NOTHING_SPENT),
}
