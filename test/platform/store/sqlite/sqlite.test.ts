// Tests sqlite.ts and collection.ts: the contracts of the store, on a file.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../../../shared/platform/store/sqlite/sqlite.ts'
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

describe('the store in SQLite', () => {
  let dir: string
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'agent-engine-store-'))
  })
  after(() => rm(dir, { recursive: true }))

  describe('passes the contract of a store', () => {
    storeContract((collections, now) =>
      openSqliteStore({ file: join(dir, 'contract.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the ledger and the memory entries', () => {
    ledgerContract((collections) => openSqliteStore({ file: join(dir, 'ledger.db'), collections }))
  })

  describe('holds the flows', () => {
    flowContract((collections) => openSqliteStore({ file: join(dir, 'flows.db'), collections }))
  })

  describe('holds the executions and their history', () => {
    dispatchContract((collections, now) =>
      openSqliteStore({ file: join(dir, 'dispatches.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the plans', () => {
    planContract((collections) => openSqliteStore({ file: join(dir, 'plans.db'), collections }))
  })

  describe('holds the idempotency keys', () => {
    idempotencyContract((collections, now) =>
      openSqliteStore({ file: join(dir, 'keys.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the deliveries of webhooks', () => {
    deliveryContract((collections) => openSqliteStore({ file: join(dir, 'webhooks.db'), collections }))
  })

  describe('holds the usage of tenants', () => {
    usageContract((collections, now) =>
      openSqliteStore({ file: join(dir, 'usage.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the sessions', () => {
    sessionContract((collections, now) =>
      openSqliteStore({ file: join(dir, 'sessions.db'), collections, ...(now && { now }) }),
    )
  })

  describe('holds the schedules of plans', () => {
    planScheduleContract((collections) => openSqliteStore({ file: join(dir, 'schedules.db'), collections }))
  })

  describe('holds the records of runs', () => {
    runRecordContract((collections, now) =>
      openSqliteStore({ file: join(dir, 'runs.db'), collections, ...(now && { now }) }),
    )
  })
})
