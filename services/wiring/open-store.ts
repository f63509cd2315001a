import { join } from 'node:path'
import { createLedger, type Ledger } from '../../shared/agent/customers/store/ledger.ts'
import { createMemoryEntries, type MemoryEntries } from '../../shared/agent/customers/store/memory-entries.ts'
import { Files } from '../../shared/agent/files/files.ts'
import { PoolStore } from '../../shared/agent/providers/batch/pool/store.ts'
import { type BusySessions, createBusySessions } from '../../shared/agent/sessions/busy-sessions.ts'
import { createSessionStore, type SessionStore } from '../../shared/agent/sessions/store.ts'
import { DecidedPermissions } from '../../shared/cluster/permissions/decided.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { Objects } from '../../shared/platform/objects/port.ts'
import { createIdempotency, type JoinableKeys } from '../../shared/platform/store/idempotency.ts'
import type { Store } from '../../shared/platform/store/port.ts'
import type { SpendingStore } from '../../shared/tenancy/limits/port.ts'
import { createSpendingStore } from '../../shared/tenancy/limits/store/spending.ts'
import { toConfig } from '../../shared/tenancy/tenant-config/config.ts'
import {
  type CapabilityStore,
  createCapabilityStore,
} from '../../shared/tenancy/tenant-config/store/instance-capabilities.ts'
import {
  createTenantConfigStore,
  type TenantConfigStore,
} from '../../shared/tenancy/tenant-config/store/tenant-configs.ts'
import type { UsageStore } from '../../shared/tenancy/usage/port.ts'
import { createUsageStore } from '../../shared/tenancy/usage/store/usage.ts'
import type { DeliveryStore } from '../../shared/tenancy/webhooks/port.ts'
import { createDeliveryStore } from '../../shared/tenancy/webhooks/store/deliveries.ts'
import { BatchStore } from '../../shared/work/flows/batch/store.ts'
import { FlowEvaluationStore } from '../../shared/work/flows/evaluate/evaluation-store.ts'
import type { DispatchStore } from '../../shared/work/flows/port.ts'
import { StoredDispatches } from '../../shared/work/flows/store/dispatches.ts'
import { FlowMemoryStore } from '../../shared/work/flows/store/flow-memory.ts'
import { FlowStore, type FlowStoreOptions } from '../../shared/work/flows/store/flows.ts'
import type { Plans } from '../../shared/work/plans/port.ts'
import { createPlanScheduleStore, type PlanScheduleStore } from '../../shared/work/plans/store/plan-schedules.ts'
import { StoredPlans } from '../../shared/work/plans/store/plans.ts'
import { createTickRecords, type TickRecords } from '../../shared/work/plans/store/tick-records.ts'
import type { JobStore } from '../../shared/work/queue/port.ts'
import { createJobStore } from '../../shared/work/queue/store/jobs.ts'
import { createRunRecordStore, type RunRecordStore } from '../../shared/work/runs/records/store.ts'
import { COLLECTIONS } from './collections.ts'
import { openWorkspaceStore, type WorkspaceSettings } from './open-workspaces.ts'

export const SQLITE_FILE = 'agent-engine.db'

type StoreSettings = Settings['store']
type Limits = Pick<
  StoreSettings,
  'plansPerTenant' | 'planBytesPerTenant' | 'durability' | 'sessionIdleMs' | 'runResumeMs'
>
type Folder = Pick<StoreSettings, 'dataDir'> & WorkspaceSettings
type Database = Pick<StoreSettings, 'mongodbUrl' | 'mongodbDb'> & WorkspaceSettings

export type OpenedStore = {
  ledger: Ledger
  /** `undefined` with DURABILITY=off. */
  sessions: SessionStore | undefined
  /** `undefined` unless DURABILITY=runs. */
  busySessions: BusySessions | undefined
  decided: DecidedPermissions
  memories: MemoryEntries
  tenantConfigs: TenantConfigStore
  capabilities: CapabilityStore
  flows: FlowStore
  flowMemory: FlowMemoryStore
  flowEvaluations: FlowEvaluationStore
  dispatches: DispatchStore
  batches: BatchStore
  pooled: PoolStore
  idempotency: JoinableKeys
  jobs: JobStore
  plans: Plans
  planSchedules: PlanScheduleStore
  tickRecords: TickRecords
  runRecords: RunRecordStore
  deliveries: DeliveryStore
  spending: SpendingStore
  usage: UsageStore
  files: Files
  close(): Promise<void>
}

/** Opens the store of the standalone form: a SQLite file in DATA_DIR. */
export const openStandaloneStore = async (settings: Limits & Folder): Promise<OpenedStore> =>
  createStores(settings, await openFile(settings))

/** Opens the store of the cluster: MongoDB. `undefined` without MONGODB_URL. */
export async function openClusterStore(settings: Limits & Database, log: Log): Promise<OpenedStore | undefined> {
  const store = await openMongo(settings, log)
  return store && createStores(settings, store, { headMs: HEAD_MS })
}

/** A run that begins this soon after the last run of the same flow does not read the flow again. */
const HEAD_MS = 200

const createStores = (
  { plansPerTenant, planBytesPerTenant, durability, sessionIdleMs: idleMs, runResumeMs: resumeMs }: Limits,
  { store, objects }: Opened,
  flows: FlowStoreOptions = {},
): OpenedStore => ({
  ledger: createLedger(store),
  sessions: durability === 'off' ? undefined : createSessionStore(store, { idleMs, resumeMs }),
  busySessions: durability === 'runs' ? createBusySessions(store) : undefined,
  decided: new DecidedPermissions(store),
  memories: createMemoryEntries(store),
  tenantConfigs: createTenantConfigStore(store),
  capabilities: createCapabilityStore(store),
  flows: new FlowStore(store, flows),
  flowMemory: new FlowMemoryStore(store),
  flowEvaluations: new FlowEvaluationStore(store),
  dispatches: new StoredDispatches(store),
  batches: new BatchStore(store),
  pooled: new PoolStore(store),
  idempotency: createIdempotency(store),
  jobs: createJobStore(store),
  plans: new StoredPlans(store, { limits: { maxPlans: plansPerTenant, maxBytes: planBytesPerTenant } }),
  planSchedules: createPlanScheduleStore(store),
  tickRecords: createTickRecords(store),
  runRecords: createRunRecordStore(store),
  deliveries: createDeliveryStore(store),
  spending: createSpendingStore(store),
  usage: createUsageStore(store),
  files: new Files(store, objects, { retentionDays: retentionOf(store) }),
  async close() {
    await objects.close()
    await store.close()
  },
})

/** Reads the retention for each new file from the store, so that processes without the runtime configuration know it, too. */
function retentionOf(store: Store): (tenant: TenantId) => Promise<number> {
  const configs = createTenantConfigStore(store)
  return async (tenant) => toConfig(await configs.read(tenant)).files.retention_days
}

type Opened = { store: Store; objects: Objects }

/** The bytes of files are in the bucket of WORKSPACE_STORE, below `files/`; without it (`undefined`) they are in the database. */
async function openBucket(settings: WorkspaceSettings): Promise<Objects | undefined> {
  const { workspaceStore: place } = settings
  return place && openWorkspaceStore({ ...settings, workspaceStore: { ...place, prefix: `${place.prefix}files/` } })
}

async function openFile(settings: Folder): Promise<Opened> {
  const { dataDir } = settings
  const [{ openSqliteStore }, { openDisk }] = await Promise.all([
    import('../../shared/platform/store/sqlite/sqlite.ts'),
    import('../../shared/platform/objects/disk.ts'),
  ])
  const store = await openSqliteStore({ file: join(dataDir, SQLITE_FILE), collections: COLLECTIONS })
  return { store, objects: (await openBucket(settings)) ?? (await openDisk(join(dataDir, 'files'))) }
}

async function openMongo(settings: Database, log: Log): Promise<Opened | undefined> {
  const { mongodbUrl, mongodbDb } = settings
  if (mongodbUrl === undefined) {
    log.warn('no store is configured, so no customer history is kept: set MONGODB_URL')
    return undefined
  }
  const { openMongoStore } = await import('../../shared/platform/store/mongo/mongo.ts')
  const onProblem = (message: string) => log.error(message)
  const store = await openMongoStore({ url: mongodbUrl, database: mongodbDb, collections: COLLECTIONS, onProblem })
  return { store, objects: (await openBucket(settings)) ?? store.objects() }
}
