import { startOfPage, toPage } from '../../kernel/cursor.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { AuditedChange } from './config-changes.ts'
import type { TenantConfigStore } from './store/tenant-configs.ts'

export type ConfigHistoryPage = { changes: AuditedChange[]; next_cursor: string | null }

/** Shows who changed what in a tenant's configuration (D28). */
export class ConfigHistory {
  readonly #store: Pick<TenantConfigStore, 'audit'>

  constructor(store: Pick<TenantConfigStore, 'audit'>) {
    this.#store = store
  }

  /** Newest first. Throws `invalid_request` for an invalid cursor. */
  async list(tenant: TenantId, { limit, cursor }: { limit: number; cursor?: string }): Promise<ConfigHistoryPage> {
    const after = startOfPage(cursor, ['string', 'string'])
    const found = await this.#store.audit(tenant, { limit: limit + 1, after })
    const { page: changes, next_cursor } = toPage(found, limit, ({ at, id }) => [at, id])
    return { changes, next_cursor }
  }
}
