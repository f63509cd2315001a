import { type PageRequest, startOfPage, toPage } from '../../kernel/cursor.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { DAY_MS, readTime } from '../../kernel/time.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { Collection, CollectionSpec, Store } from '../../platform/store/port.ts'

/** One item of `GET /permissions?state=decided`: a request, and who decided it when and how (D24.3). */
export type DecidedPermission = ApiType<'DecidedPermission'>

export type DecidedPage = { permissions: DecidedPermission[]; next_cursor: string | null }

/** The decisions of each tenant, kept for the `audit.retention_days` at the time of the decision. */
export const DECIDED_PERMISSIONS: CollectionSpec = {
  name: 'decided_permissions',
  key: ['id'],
  order: { within: [], by: ['decided_at', 'id'], direction: 'descending' },
  expiresBy: 'expires_ms',
}

/** Every method throws `unavailable` when the store does not answer. */
export class DecidedPermissions {
  readonly #decisions: Collection

  constructor(store: Store) {
    this.#decisions = store.collection(DECIDED_PERMISSIONS)
  }

  /** Stores a decision; adding it again changes nothing. */
  async add(tenant: TenantId, decided: DecidedPermission, keptDays: number): Promise<void> {
    const expires_ms = Date.parse(decided.decided_at) + keptDays * DAY_MS
    await this.#decisions.insert(tenant, { ...decided, expires_ms })
  }

  async find(tenant: TenantId, id: string): Promise<DecidedPermission | undefined> {
    const found = await this.#decisions.get(tenant, { id })
    return found && shown(found.doc)
  }

  /** Newest first, back to `since`, a time in ISO 8601. Throws `invalid_request` for an invalid cursor or time. */
  async page(
    tenant: TenantId,
    { limit, cursor, since }: PageRequest & { since?: string | undefined },
  ): Promise<DecidedPage> {
    const sinceMs = readTime('since', since)
    const found = await this.#decisions.page(tenant, {
      after: startOfPage(cursor, ['string', 'string']),
      until: sinceMs === undefined ? undefined : [new Date(sinceMs).toISOString()],
      limit: limit + 1,
    })
    const all = found.map(({ doc }) => shown(doc))
    const { page: permissions, next_cursor } = toPage(all, limit, ({ decided_at, id }) => [decided_at, id])
    return { permissions, next_cursor }
  }
}

function shown(doc: JsonObject): DecidedPermission {
  const { expires_ms: _expires, ...decided } = doc
  return decided as DecidedPermission
}
