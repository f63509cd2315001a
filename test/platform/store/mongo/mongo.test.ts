// Tests mongo.ts and collection.ts: the contracts of the store, on a real MongoDB.

import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import { callPoolContract } from '../../../contract/call-pool.ts'
import { dispatchContract } from '../../../contract/dispatches.ts'
import { flowContract } from '../../../contract/flow-store.ts'
import { idempotencyContract } from '../../../contract/idempotency.ts'
import { ledgerContract } from '../../../contract/ledger.ts'
import { planScheduleContract } from '../../../contract/plan-schedules.ts'
import { planContract } from '../../../contract/plans.ts'
import { runRecordContract } from '../../../contract/run-records.ts'
import { sessionContract } from '../../../contract/sessions.ts'
import { type OpenStore, storeContract } from '../../../contract/store.ts'
import { usageContract } from '../../../contract/usage.ts'
import { deliveryContract } from '../../../contract/webhook-deliveries.ts'
import { useMongo } from '../../../support/mongo.ts'

describe('the store in MongoDB', () => {
  const mongo = useMongo()
  const openIn =
    (database: string): OpenStore =>
    (collections, now) =>
      openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) })

  describe('passes the contract of a store', () => storeContract(openIn(mongo.newDatabase())))

  /** One database: the collections and indexes of the product cost MongoDB 0.3 s of CPU. */
  const open = openIn(mongo.newDatabase())
  for (const [what, contract] of [
    ['the ledger and the memory entries', ledgerContract],
    ['the flows', flowContract],
    ['the executions and their history', dispatchContract],
    ['the plans', planContract],
    ['the idempotency keys', idempotencyContract],
    ['the deliveries of webhooks', deliveryContract],
    ['the calls that wait for batches of vendors', callPoolContract],
    ['the usage of tenants', usageContract],
    ['the sessions', sessionContract],
    ['the schedules of plans', planScheduleContract],
    ['the records of runs', runRecordContract],
  ] as const)
    describe(`holds ${what}`, () => contract(open))
})
