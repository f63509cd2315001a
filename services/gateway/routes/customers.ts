import type { RequestHandler } from 'express'
import { AppError } from '../../../shared/errors.ts'
import type { Ledger } from '../../../shared/store/ledger.ts'
import { tenantOf } from '../middleware/auth.ts'
import { CUSTOMER, pageOf, pathId } from '../params.ts'

/** What a customer's runs were asked and what they answered (D4.14). Without a store there is none: 503. */
export function customerLedger(ledger: Ledger | undefined): RequestHandler {
  return async (req, res) => {
    const customerId = pathId(req, 'id', CUSTOMER)
    if (!ledger) throw new AppError('unavailable', 'this server keeps no ledgers: set MONGODB_URL and start it again')
    res.json(await ledger.page(tenantOf(res), customerId, pageOf(req)))
  }
}
