// Tests mongo.ts and collection.ts: the contracts of the store, on a real MongoDB.

import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import { dispatchContract } from '../../../contract/dispatches.ts'
import { flowContract } from '../../../contract/flow-store.ts'
import { idempotencyContract } from '../../../contract/idempotency.ts'
import { ledgerContract } from '../../../contract/ledger.ts'
import { planScheduleContract } from '../../../contract/plan-schedules.ts'
import { planContract } from '../../../contract/plans.ts'
import { runRecordContract } from '../../../contract/run-records.ts'
import { sessionContract } from '../../../contract/sessions.ts'
import { storeContract } from '../../../contract/store.ts'
import { usageContract } from '../../../contract/usage.ts'
import { deliveryContract } from '../../../contract/webhook-deliveries.ts'
import { useMongo } from '../../../support/mongo.ts'

describe('the store in MongoDB', () => {
  const mongo = useMongo()

  describe('passes the contract of a store', () => {
    const database = mongo.newDatabase()
    storeContract((collections, now) => openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) }))
  })

  describe('holds the ledger and the memory entries', () => {
    const database = mongo.newDatabase()
    ledgerContract((collections) => openMongoStore({ url: mongo.url, database, collections }))
  })

  describe('holds the flows', () => {
    const database = mongo.newDatabase()
    flowContract((collections) => openMongoStore({ url: mongo.url, database, collections }))
  })

  describe('holds the executions and their history', () => {
    const database = mongo.newDatabase()
    dispatchContract((collections, now) =>
      openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) }),
    )
  })

  describe('holds the plans', () => {
    const database = mongo.newDatabase()
    planContract((collections) => openMongoStore({ url: mongo.url, database, collections }))
  })

  describe('holds the idempotency keys', () => {
    const database = mongo.newDatabase()
    idempotencyContract((collections, now) =>
      openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) }),
    )
  })

  describe('holds the deliveries of webhooks', () => {
    deliveryContract((collections) =>
      openMongoStore({ url: mongo.url, database: `webhooks_${Date.now()}`, collections }),
    )
  })

  describe('holds the usage of tenants', () => {
    const database = mongo.newDatabase()
    usageContract((collections, now) => openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) }))
  })

  describe('holds the sessions', () => {
    const database = mongo.newDatabase()
    sessionContract((collections, now) =>
      openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) }),
    )
  })

  describe('holds the schedules of plans', () => {
    const database = mongo.newDatabase()
    planScheduleContract((collections) => openMongoStore({ url: mongo.url, database, collections }))
  })

  describe('holds the records of runs', () => {
    const database = mongo.newDatabase()
    runRecordContract((collections, now) =>
      openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) }),
    )
  })
})
