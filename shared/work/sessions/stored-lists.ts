import type { SessionPosition, SessionStore } from '../../agent/sessions/store.ts'
import type { Broker } from '../../cluster/commands/broker.ts'
import { mergeSessions, SESSION_ID, sessionPosition } from '../../cluster/commands/pages.ts'
import type { SessionPage } from '../../cluster/commands/sessions.ts'
import { readCursor, writeCursor } from '../../cluster/list-page.ts'
import {
  mergeRemembered,
  type RememberedPermission,
  rememberedPage,
} from '../../cluster/permissions/remembered-page.ts'
import type { PageRequest } from '../../kernel/cursor.ts'
import type { TenantId } from '../../kernel/tenant.ts'

export type StoredSessions = Pick<SessionStore, 'page'>

/** The lists of a broker, extended by stored sessions that are in no worker's memory (D32). If a worker has the session, the worker's data counts. */
export const withStoredSessions = (
  broker: Pick<Broker, 'listSessions' | 'listRemembered'>,
  store: StoredSessions,
): Pick<Broker, 'listSessions' | 'listRemembered'> => ({
  async listSessions(tenant, page) {
    const [stored, live] = await Promise.all([storedPage(store, tenant, page), broker.listSessions(tenant, page)])
    return mergeSessions([stored, live], page.limit)
  },
  async listRemembered(tenant, page) {
    const [stored, live] = await Promise.all([rememberedOf(store, tenant), broker.listRemembered(tenant, page)])
    return mergeRemembered([rememberedPage(stored, page), live], page.limit)
  },
})

/** The page of stored sessions after the cursor, which comes from a list of sessions in memory. */
async function storedPage(
  store: StoredSessions,
  tenant: TenantId,
  { limit, cursor }: PageRequest,
): Promise<SessionPage> {
  const before = cursor === undefined ? undefined : readCursor(cursor, SESSION_ID)
  const after: SessionPosition | undefined = before && [new Date(before.startedMs).toISOString(), before.id]
  const { sessions, next } = await store.page(tenant, { limit, after })
  const last = sessions.at(-1)
  const hasMore = next !== undefined && last !== undefined
  return { sessions, next_cursor: hasMore ? writeCursor(sessionPosition(last)) : null }
}

const PAGE = 100

/** Returns the remembered tools of a tenant's stored sessions. Few sessions have one, so all pages are read. */
async function rememberedOf(store: StoredSessions, tenant: TenantId): Promise<RememberedPermission[]> {
  const remembered: RememberedPermission[] = []
  let after: SessionPosition | undefined
  do {
    const { sessions, next } = await store.page(tenant, { limit: PAGE, after, remembers: true })
    for (const session of sessions)
      remembered.push(...session.remembered.map((tool) => ({ session_id: session.session_id, ...tool })))
    after = next
  } while (after)
  return remembered
}
