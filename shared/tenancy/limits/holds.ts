import { type BudgetHolds, type HoldAnswer, type HoldRequest } from './port.ts'

/**
 * Decides how much the only process may reserve. A budget with less left than the next call may cost still allows that call if no other is
 * running: the call that reaches a budget may exceed it (D11.2).
 */
function decideHolds(requests: readonly HoldRequest[]): HoldAnswer[] {
  const roomOf = ({ known, limit, hold: { atWork, next, reserve } }: HoldRequest): HoldAnswer['granted'] => {
    const fits = ({ tokens, costUsd }: typeof next) =>
      known.tokens + tokens <= limit.tokens && known.costUsd + costUsd <= limit.costUsd
    if (known.tokens >= limit.tokens || known.costUsd >= limit.costUsd) return 'none'
    if (fits(reserve) && reserve.calls <= limit.calls) return 'reserve'
    const isAlone = atWork.tokens === 0 // By tokens, since every call has some, but not every call has a price.
    if (!isAlone && !fits(next)) return 'lacking'
    return next.calls <= limit.calls ? 'next' : 'busy'
  }
  const rooms = requests.map(roomOf)
  const isGranted = rooms.every(hasRoom)
  return requests.map(({ known }, i) => {
    const room = rooms[i] ?? 'none'
    return { granted: hasRoom(room) && !isGranted ? 'kept' : room, spent: known }
  })
}

const hasRoom = (room: HoldAnswer['granted']) => room === 'reserve' || room === 'next'

/** The holds of the standalone form, whose process is the only one. */
export const SINGLE_PROCESS: BudgetHolds = { ask: async (_tenant, requests) => decideHolds(requests) }
