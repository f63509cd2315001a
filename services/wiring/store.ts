import { join } from 'node:path'
import type { Config } from '../../shared/config/config.ts'
import type { DispatchStore } from '../../shared/flows/port.ts'
import type { SpendingStore } from '../../shared/limits/port.ts'
import type { Log } from '../../shared/log.ts'
import type { Plans } from '../../shared/plans/port.ts'
import type { JobStore } from '../../shared/queue/port.ts'
import { COLLECTIONS } from '../../shared/store/collections.ts'
import { createDispatches } from '../../shared/store/dispatches.ts'
import { FlowMemoryStore } from '../../shared/store/flow-memory.ts'
import { FlowStore } from '../../shared/store/flows.ts'
import { createIdempotency, type Idempotency } from '../../shared/store/idempotency.ts'
import { type CapabilityStore, createCapabilityStore } from '../../shared/store/instance-capabilities.ts'
import { createJobStore } from '../../shared/store/jobs.ts'
import { createLedger, type Ledger } from '../../shared/store/ledger.ts'
import { createMemoryEntries, type MemoryEntries } from '../../shared/store/memory-entries.ts'
import { createPlanScheduleStore, type PlanScheduleStore } from '../../shared/store/plan-schedules.ts'
import { createTickRecords, type TickRecords } from '../../shared/store/plans/tick-records.ts'
import { createPlans } from '../../shared/store/plans.ts'
import type { Store } from '../../shared/store/port.ts'
import { createSpendingStore } from '../../shared/store/spending/spending.ts'
import { createTenantConfigStore, type TenantConfigStore } from '../../shared/store/tenant-configs.ts'
import { createDeliveryStore } from '../../shared/store/webhooks/deliveries.ts'
import type { DeliveryStore } from '../../shared/webhooks/port.ts'

export const SQLITE_FILE = 'agent-engine.db'

type PlanRoom = Pick<Config, 'plansPerTenant' | 'planBytesPerTenant'>
type StoreConfig = Pick<Config, 'mongodbUrl' | 'mongodbDb'>

export type OpenedStore = {
  ledger: Ledger
  memories: MemoryEntries
  tenantConfigs: TenantConfigStore
  capabilities: CapabilityStore
  flows: FlowStore
  flowMemory: FlowMemoryStore
  dispatches: DispatchStore
  idempotency: Idempotency
  jobs: JobStore
  plans: Plans
  planSchedules: PlanScheduleStore
  tickRecords: TickRecords
  deliveries: DeliveryStore
  spending: SpendingStore
  close(): Promise<void>
}

/** Opens the store of the standalone form: a SQLite file in DATA_DIR. */
export const openStandaloneStore = async (config: PlanRoom & Pick<Config, 'dataDir'>): Promise<OpenedStore> =>
  createStores(config, await openFile(config))

/** Opens the store of the cluster: MongoDB. `undefined` without MONGODB_URL. */
export async function openClusterStore(config: PlanRoom & StoreConfig, log: Log): Promise<OpenedStore | undefined> {
  const store = await openMongo(config, log)
  return store && createStores(config, store)
}

const createStores = ({ plansPerTenant, planBytesPerTenant }: PlanRoom, store: Store): OpenedStore => ({
  ledger: createLedger(store),
  memories: createMemoryEntries(store),
  tenantConfigs: createTenantConfigStore(store),
  capabilities: createCapabilityStore(store),
  flows: new FlowStore(store),
  flowMemory: new FlowMemoryStore(store),
  dispatches: createDispatches(store),
  idempotency: createIdempotency(store),
  jobs: createJobStore(store),
  plans: createPlans(store, { limits: { maxPlans: plansPerTenant, maxBytes: planBytesPerTenant } }),
  planSchedules: createPlanScheduleStore(store),
  tickRecords: createTickRecords(store),
  deliveries: createDeliveryStore(store),
  spending: createSpendingStore(store),
  close: () => store.close(),
})

async function openFile({ dataDir }: Pick<Config, 'dataDir'>): Promise<Store> {
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
