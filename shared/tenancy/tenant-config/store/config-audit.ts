import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { CollectionSpec, Store } from '../../../platform/store/port.ts'
import type { AuditedChange } from '../config-changes.ts'

/** The changes of each tenant's configuration, for a year (D28b). */
export const CONFIG_AUDIT: CollectionSpec = {
  name: 'config_audit',
  key: ['id'],
  order: { within: [], by: ['at', 'id'], direction: 'descending' },
  ttlSecs: 365 * 24 * 3_600,
}

export type AuditPage = { limit: number; after?: readonly [at: string, id: string] | undefined }

export interface ConfigAudit {
  /**
   * Records the `last_change` of configurations, each only once. The replaced configuration is added, too, because a process may have
   * died between its change and the record.
   */
  add(tenant: TenantId, configs: readonly (JsonObject | undefined)[]): Promise<void>
  /** Newest first. */
  page(tenant: TenantId, page: AuditPage): Promise<AuditedChange[]>
}

export function createConfigAudit(store: Store): ConfigAudit {
  const audit = store.collection(CONFIG_AUDIT)
  return {
    async add(tenant, configs) {
      for (const config of configs) {
        const change = config?.['last_change'] as AuditedChange | undefined
        if (change) await audit.insert(tenant, change)
      }
    },
    async page(tenant, { limit, after }) {
      const found = await audit.page(tenant, { limit, after })
      return found.map(({ doc }) => doc as AuditedChange)
    },
  }
}
