import type { RequestHandler } from 'express'
import { AppError } from '../../../shared/errors.ts'
import type { Ledger } from '../../../shared/store/ledger.ts'
import { tenantOf } from '../middleware/auth.ts'
import { CUSTOMER, pageOf, pathId } from '../params.ts'

/** Lists the prompts and answers of a customer's runs (D4.14). 503 when the server has no store. */
export function customerLedger(ledger: Ledger | undefined): RequestHandler {
  return async (req, res) => {
    const customerId = pathId(req, 'id', CUSTOMER)
    if (!ledger)
      throw new AppError('unavailable', 'this server has no store for ledgers: set MONGODB_URL and start it again')
    res.json(await ledger.page(tenantOf(res), customerId, pageOf(req)))
  }
}
