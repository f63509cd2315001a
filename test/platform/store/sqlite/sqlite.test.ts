// Tests sqlite.ts and collection.ts: the contracts of the store, on a file.

import { join } from 'node:path'
import { openSqliteStore } from '../../../../shared/platform/store/sqlite/sqlite.ts'
import { callPoolContract } from '../../../contract/call-pool.ts'
import { dispatchContract } from '../../../contract/dispatches.ts'
import { flowContract } from '../../../contract/flow-store.ts'
import { idempotencyContract } from '../../../contract/idempotency.ts'
import { ledgerContract } from '../../../contract/ledger.ts'
import { planScheduleContract } from '../../../contract/plan-schedules.ts'
import { planContract } from '../../../contract/plans.ts'
import { sessionContract } from '../../../contract/sessions.ts'
import { storeContract } from '../../../contract/store.ts'
import { usageContract } from '../../../contract/usage.ts'
import { deliveryContract } from '../../../contract/webhook-deliveries.ts'
import { useTempFolder } from '../../../support/temp-folder.ts'

describe('the store in SQLite', () => {
  const dir = useTempFolder()

  describe('passes the contract of a store', () => {
    storeContract((collections, now) =>
      openSqliteStore({ file: join(dir.path, 'contract.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the ledger and the memory entries', () => {
    ledgerContract((collections) => openSqliteStore({ file: join(dir.path, 'ledger.db'), collections }))
  })

  describe('holds the flows', () => {
    flowContract((collections) => openSqliteStore({ file: join(dir.path, 'flows.db'), collections }))
  })

  describe('holds the executions and their history', () => {
    dispatchContract((collections, now) =>
      openSqliteStore({ file: join(dir.path, 'dispatches.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the plans', () => {
    planContract((collections) => openSqliteStore({ file: join(dir.path, 'plans.db'), collections }))
  })

  describe('holds the idempotency keys', () => {
    idempotencyContract((collections, now) =>
      openSqliteStore({ file: join(dir.path, 'keys.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the calls that wait for batches of vendors', () => {
    callPoolContract((collections) => openSqliteStore({ file: join(dir.path, 'pools.db'), collections }))
  })

  describe('holds the deliveries of webhooks', () => {
    deliveryContract((collections) => openSqliteStore({ file: join(dir.path, 'webhooks.db'), collections }))
  })

  describe('holds the usage of tenants', () => {
    usageContract((collections, now) =>
      openSqliteStore({ file: join(dir.path, 'usage.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the sessions', () => {
    sessionContract((collections, now) =>
      openSqliteStore({ file: join(dir.path, 'sessions.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the schedules of plans', () => {
    planScheduleContract((collections) => openSqliteStore({ file: join(dir.path, 'schedules.db'), collections }))
  })
})
