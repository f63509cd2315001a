import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import type { Ledger } from '../../../shared/agent/customers/store/ledger.ts'
import { createKeyedQueue } from '../../../shared/kernel/async/keyed-queue.ts'
import { tenantOf } from '../middleware/auth.ts'
import { CUSTOMER, pageRequestOf, pathId } from '../params.ts'
import { required } from './requires.ts'

/**
 * Lists the prompts and answers of a customer's runs (D4.14). 503 when the server has no store. The pages of one tenant are read and
 * rendered one after another, with pauses as long as the work: rendering a long page blocks the event loop for milliseconds.
 */
export function customerLedger(ledger: Ledger | undefined): RequestHandler {
  const queue = createKeyedQueue()
  return async (req, res) => {
    const customerId = pathId(req, 'id', CUSTOMER)
    const entries = required('ledgers', ledger)
    const [tenant, query] = [tenantOf(res), pageRequestOf(req)]
    await queue.run(tenant, async () => {
      const from = performance.now()
      res.json(await entries.page(tenant, customerId, query))
      await sleep(performance.now() - from)
    })
  }
}
