import { startOfPage, toPage } from '../../kernel/cursor.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { readTime } from '../../kernel/time.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { CollectionSpec, Store } from '../../platform/store/port.ts'
import type { PageRequest } from '../port.ts'

/** One item of `GET /permissions?state=decided`: a request, and who decided it when and how (D24.3). */
export type DecidedPermission = ApiType<'DecidedPermission'>

export type DecidedPage = { permissions: DecidedPermission[]; next_cursor: string | null }

/** The decisions of each tenant, for as long as its `audit.retention_days` said when they were made. */
export const DECIDED_PERMISSIONS: CollectionSpec = {
  name: 'decided_permissions',
  key: ['id'],
  order: { within: [], by: ['decided_at', 'id'], direction: 'descending' },
  expiresBy: 'expires_ms',
}

/** Every method throws `unavailable` when the store does not answer. */
export interface DecidedPermissions {
  /** Stores a decision, once however often it is added. */
  add(tenant: TenantId, decided: DecidedPermission, keptDays: number): Promise<void>
  /** Newest first, back to `since`, a time in ISO 8601. Throws `invalid_request` for an invalid cursor or time. */
  page(tenant: TenantId, page: PageRequest & { since?: string | undefined }): Promise<DecidedPage>
}

const DAY_MS = 86_400_000

export function createDecidedPermissions(store: Store): DecidedPermissions {
  const decisions = store.collection(DECIDED_PERMISSIONS)
  return {
    async add(tenant, decided, keptDays) {
      const expires_ms = Date.parse(decided.decided_at) + keptDays * DAY_MS
      await decisions.insert(tenant, { ...decided, expires_ms })
    },
    async page(tenant, { limit, cursor, since }) {
      const sinceMs = readTime('since', since)
      const found = await decisions.page(tenant, {
        after: startOfPage(cursor, ['string', 'string']),
        until: sinceMs === undefined ? undefined : [new Date(sinceMs).toISOString()],
        limit: limit + 1,
      })
      const all = found.map(({ doc }) => shown(doc))
      const { page: permissions, next_cursor } = toPage(all, limit, ({ decided_at, id }) => [decided_at, id])
      return { permissions, next_cursor }
    },
  }
}

function shown(doc: JsonObject): DecidedPermission {
  const { expires_ms: _expires, ...decided } = doc
  return decided as DecidedPermission
}
