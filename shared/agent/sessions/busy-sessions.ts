import { SYSTEM_TENANT, type TenantId } from '../../kernel/tenant.ts'
import type { CollectionSpec, Store } from '../../platform/store/port.ts'

/**
 * The sessions that have runs, by the process that has them, so that the runs of one that died are found (D32.8). They belong to no tenant: one
 * query finds those of all. One that is left over does no harm.
 */
export const BUSY_SESSIONS: CollectionSpec = {
  name: 'busy_sessions',
  key: ['id'],
  order: { within: [], by: ['id'], direction: 'ascending' },
  filters: ['owner'],
}

/** `owner` names the process: its epoch. */
export type BusySession = { id: string; owner: string; tenant: TenantId; session_id: string }

/** Every method throws `unavailable` when the store does not answer. */
export interface BusySessions {
  add(session: BusySession): Promise<void>
  delete(ids: readonly string[]): Promise<void>
  /** The next process, in the order of their names, that has left some. */
  nextOwner(after: string | undefined): Promise<string | undefined>
  of(owner: string, limit: number): Promise<BusySession[]>
}

export function createBusySessions(store: Store): BusySessions {
  const sessions = store.collection(BUSY_SESSIONS)
  return {
    add: async (session) => void (await sessions.insert(SYSTEM_TENANT, session)),
    async delete(ids) {
      const keys = ids.map((id) => ({ id }))
      await sessions.deleteMany(SYSTEM_TENANT, keys, { durability: 'ordered' })
    },
    nextOwner: (after) => sessions.nextValue(SYSTEM_TENANT, 'owner', after),
    async of(owner, limit) {
      const found = await sessions.page(SYSTEM_TENANT, { where: { owner }, limit })
      return found.map(({ doc }) => doc as BusySession)
    },
  }
}
