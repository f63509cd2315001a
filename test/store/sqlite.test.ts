import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../shared/store/sqlite/sqlite.ts'
import { ledgerContract } from '../contract/ledger.ts'
import { storeContract } from '../contract/store.ts'

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
})
