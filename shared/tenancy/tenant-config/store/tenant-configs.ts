import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { newId } from '../../../kernel/ids.ts'
import { SYSTEM_TENANT, type TenantId } from '../../../kernel/tenant.ts'
import { appendNext } from '../../../platform/store/append.ts'
import type { Collection, CollectionSpec, Store } from '../../../platform/store/port.ts'
import { replaceDoc } from '../../../platform/store/replace.ts'
import type { AuditedChange } from '../config-changes.ts'
import { type AuditPage, createConfigAudit } from './config-audit.ts'

export const TENANT_CONFIGS: CollectionSpec = { name: 'tenant_configs', key: ['id'] }

/** The tenants that have ever stored a configuration; kept under the system tenant. */
export const CONFIGURED_TENANTS: CollectionSpec = {
  name: 'configured_tenants',
  key: ['name'],
  order: { within: [], by: ['name'], direction: 'ascending' },
}

/** The newest changes of any tenant's configuration, numbered from 1 without gaps; kept under the system tenant. */
export const CONFIG_CHANGES: CollectionSpec = {
  name: 'config_changes',
  key: ['seq'],
  unique: [['id']],
  order: { within: [], by: ['seq'], direction: 'descending' },
}

export type ConfigChange = { seq: number; tenant: TenantId }

/** Each tenant's configuration as one document, and the list of changes, which all processes read. */
export interface TenantConfigStore {
  /** `undefined` for a tenant that has none. */
  read(tenant: TenantId): Promise<JsonObject | undefined>
  /**
   * Replaces the document by the result of `change`, lists the change, and records its `last_change`. If another write came first `change` is called
   * again, so it must have no side effects. If it throws, nothing is stored.
   */
  update(tenant: TenantId, change: (doc: JsonObject | undefined) => JsonObject): Promise<JsonObject>
  /** The changes of a tenant's configuration, newest first (D28). */
  audit(tenant: TenantId, page: AuditPage): Promise<AuditedChange[]>
  /** The newest changes, newest first, at most `limit`. */
  changes(limit: number): Promise<ConfigChange[]>
  /** Every tenant that has a configuration, in pages of names in ascending order. */
  tenants(after: string | undefined): Promise<TenantId[]>
}

const DOC_ID = 'config'
const KEPT_CHANGES = 1_000
const TENANT_PAGE = 200

export function createTenantConfigStore(store: Store): TenantConfigStore {
  const configs = store.collection(TENANT_CONFIGS)
  const tenants = store.collection(CONFIGURED_TENANTS)
  const changes = store.collection(CONFIG_CHANGES)
  const audit = createConfigAudit(store)
  // The writers of one process wait for each other; writers of several processes rarely compete.
  const queue = createKeyedQueue()
  return {
    async read(tenant) {
      return (await configs.get(tenant, { id: DOC_ID }))?.doc
    },
    async update(tenant, change) {
      // The list of tenants gets its entry before the configuration is stored, so that no configuration lacks one.
      const beforeInsert = () => tenants.insert(SYSTEM_TENANT, { name: tenant })
      let replaced: JsonObject | undefined
      const noting = (before: JsonObject | undefined) => {
        replaced = before
        return change(before)
      }
      const replacement = { key: { id: DOC_ID }, change: noting, beforeInsert }
      const doc = await queue.run(`config ${tenant}`, () => replaceDoc(configs, tenant, replacement))
      await audit.add(tenant, [replaced, doc])
      await queue.run('changes', () => listChange(changes, tenant))
      return doc
    },
    async audit(tenant, page) {
      await audit.add(tenant, [(await configs.get(tenant, { id: DOC_ID }))?.doc])
      return audit.page(tenant, page)
    },
    async changes(limit) {
      const page = await changes.page(SYSTEM_TENANT, { limit })
      return page.map(({ doc }) => ({ seq: Number(doc['seq']), tenant: String(doc['tenant']) as TenantId }))
    },
    async tenants(after) {
      const begin = after === undefined ? {} : { after: [after] }
      const page = await tenants.page(SYSTEM_TENANT, { limit: TENANT_PAGE, ...begin })
      return page.map(({ doc }) => String(doc['name']) as TenantId)
    },
  }
}

async function listChange(changes: Collection, tenant: TenantId): Promise<void> {
  const id = newId('chg')
  const seq = await appendNext(changes, SYSTEM_TENANT, { within: {}, identity: { id }, doc: { id, tenant } })
  if (seq > KEPT_CHANGES) await changes.delete(SYSTEM_TENANT, { seq: seq - KEPT_CHANGES })
}
