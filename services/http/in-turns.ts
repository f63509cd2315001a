import type { RequestListener } from 'node:http'
import { LoopBudget } from '../../shared/kernel/async/loop-budget.ts'

/**
 * How long new requests are handed to the app in one turn of the event loop. Further ones wait in order of arrival, so that open streams
 * are served meanwhile.
 */
const REQUESTS_MS = 2

/** Limits the time that new requests take in one turn of the event loop. A client that leaves while its request waits is not served. */
export function inTurns(app: RequestListener, budget = new LoopBudget(REQUESTS_MS)): RequestListener {
  return (req, res) => {
    const turn = budget.enter()
    if (!turn) return app(req, res)
    void turn.then(() => res.closed || app(req, res))
  }
}
