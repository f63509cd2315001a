import type { JsonObject } from '../events.ts'
import { newId } from '../ids.ts'
import { createKeyedQueue } from '../keyed-queue.ts'
import { SYSTEM_TENANT, type TenantId } from '../tenant.ts'
import { appendNext } from './append.ts'
import type { Collection, CollectionSpec, Store } from './port.ts'
import { storeUnavailable } from './unavailable.ts'

export const TENANT_CONFIGS: CollectionSpec = { name: 'tenant_configs', key: ['id'] }

/** The tenants that have ever stored a configuration; kept under the system tenant. */
export const CONFIGURED_TENANTS: CollectionSpec = {
  name: 'configured_tenants',
  key: ['name'],
  order: { within: [], by: ['name'], direction: 'ascending' },
}

/** The newest changes of any tenant's configuration, numbered from 1 without a hole; kept under the system tenant. */
export const CONFIG_CHANGES: CollectionSpec = {
  name: 'config_changes',
  key: ['seq'],
  unique: [['id']],
  order: { within: [], by: ['seq'], direction: 'descending' },
}

export type ConfigChange = { seq: number; tenant: TenantId }

/** Each tenant's configuration as one document, and the list of changes by which processes find out. */
export interface TenantConfigStore {
  /** `undefined` for a tenant that has none. */
  read(tenant: TenantId): Promise<JsonObject | undefined>
  /**
   * Replaces the document by what `change` makes of it, and lists the change; again when another write came first, so `change` must
   * have no effects. What `change` throws is thrown, and nothing is stored.
   */
  update(tenant: TenantId, change: (doc: JsonObject | undefined) => JsonObject): Promise<JsonObject>
  /** The newest changes, newest first, at most `limit`. */
  changes(limit: number): Promise<ConfigChange[]>
  /** Every tenant that has a configuration, in pages of names in ascending order. */
  tenants(after: string | undefined): Promise<TenantId[]>
}

const DOC_ID = 'config'
const MAX_TRIES = 20
const KEPT_CHANGES = 1_000
const TENANT_PAGE = 200

export function createTenantConfigStore(store: Store): TenantConfigStore {
  const configs = store.collection(TENANT_CONFIGS)
  const tenants = store.collection(CONFIGURED_TENANTS)
  const changes = store.collection(CONFIG_CHANGES)
  // The writers of one process wait for each other; those of several are seldom many at once.
  const queue = createKeyedQueue()
  return {
    async read(tenant) {
      return (await configs.get(tenant, { id: DOC_ID }))?.doc
    },
    async update(tenant, change) {
      const register = () => tenants.insert(SYSTEM_TENANT, { name: tenant })
      const doc = await queue.run(`config ${tenant}`, () => replace(configs, tenant, { change, register }))
      await queue.run('changes', () => listChange(changes, tenant))
      return doc
    },
    async changes(limit) {
      const page = await changes.page(SYSTEM_TENANT, { limit })
      return page.map(({ doc }) => ({ seq: Number(doc['seq']), tenant: String(doc['tenant']) as TenantId }))
    },
    async tenants(after) {
      const page = await tenants.page(SYSTEM_TENANT, {
        limit: TENANT_PAGE,
        ...(after !== undefined && { after: [after] }),
      })
      return page.map(({ doc }) => String(doc['name']) as TenantId)
    },
  }
}

/** Writes the changed document, again while other processes are faster. A refused change throws before anything is written. */
async function replace(
  configs: Collection,
  tenant: TenantId,
  { change, register }: { change: (doc: JsonObject | undefined) => JsonObject; register: () => Promise<unknown> },
): Promise<JsonObject> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const found = await configs.get(tenant, { id: DOC_ID })
    const doc = { ...change(found?.doc), id: DOC_ID }
    if (!found) await register() // First, so that no configuration is left out of the list of tenants.
    const isStored = found
      ? await configs.replaceIfVersion(tenant, { doc, version: found.version })
      : await configs.insert(tenant, doc)
    if (isStored) return doc
  }
  throw storeUnavailable('the configuration is being changed by too many writers')
}

async function listChange(changes: Collection, tenant: TenantId): Promise<void> {
  const id = newId('chg')
  const seq = await appendNext(changes, SYSTEM_TENANT, { within: {}, identity: { id }, doc: { id, tenant } })
  if (seq > KEPT_CHANGES) await changes.delete(SYSTEM_TENANT, { seq: seq - KEPT_CHANGES })
}
