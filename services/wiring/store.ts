import { join } from 'node:path'
import type { Config } from '../../shared/config/config.ts'
import type { Form } from '../../shared/config/fields.ts'
import type { Log } from '../../shared/log.ts'
import { COLLECTIONS } from '../../shared/store/collections.ts'
import { type CapabilityStore, createCapabilityStore } from '../../shared/store/instance-capabilities.ts'
import { createLedger, type Ledger } from '../../shared/store/ledger.ts'
import { createMemoryEntries, type MemoryEntries } from '../../shared/store/memory-entries.ts'
import type { Store } from '../../shared/store/port.ts'
import { createTenantConfigStore, type TenantConfigStore } from '../../shared/store/tenant-configs.ts'

export const SQLITE_FILE = 'agent-engine.db'

type StoreConfig = Pick<Config, 'dataDir' | 'mongodbUrl' | 'mongodbDb'>

export type OpenedStore = {
  ledger: Ledger
  memories: MemoryEntries
  tenantConfigs: TenantConfigStore
  capabilities: CapabilityStore
  close(): Promise<void>
}

/** Opens the store: a SQLite file in DATA_DIR, or MongoDB in the cluster. A cluster without MONGODB_URL has none. */
export async function openStore(config: StoreConfig, form: Form, log: Log): Promise<OpenedStore | undefined> {
  const store = form === 'standalone' ? await openFile(config) : await openMongo(config, log)
  if (!store) return undefined
  return {
    ledger: createLedger(store),
    memories: createMemoryEntries(store),
    tenantConfigs: createTenantConfigStore(store),
    capabilities: createCapabilityStore(store),
    close: () => store.close(),
  }
}

async function openFile({ dataDir }: StoreConfig): Promise<Store> {
  const { openSqliteStore } = await import('../../shared/store/sqlite/sqlite.ts')
  return openSqliteStore({ file: join(dataDir, SQLITE_FILE), collections: COLLECTIONS })
}

async function openMongo({ mongodbUrl, mongodbDb }: StoreConfig, log: Log): Promise<Store | undefined> {
  if (mongodbUrl === undefined) {
    log.warn('no store is configured, so no customer history is kept: set MONGODB_URL')
    return undefined
  }
  const { openMongoStore } = await import('../../shared/store/mongo/mongo.ts')
  const onProblem = (message: string) => log.error(message)
  return openMongoStore({ url: mongodbUrl, database: mongodbDb, collections: COLLECTIONS, onProblem })
}
