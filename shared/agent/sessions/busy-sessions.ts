import { SYSTEM_TENANT, type TenantId } from '../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Store } from '../../platform/store/port.ts'
import { ONE_SHOT_LOG } from './log-documents.ts'
import { oneShotSessionOf, runOfOneShot } from './one-shot.ts'

/**
 * The sessions that have runs, by process, so that the runs of a dead process are found (D32.8). They are stored under no tenant, so that one query
 * finds those of all. A leftover mark does no harm. A one-shot run has such a mark only once another process continues it: before that, the first
 * entry of its log is the mark.
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
  /** The next process, in the order of names, that has left marks. */
  nextOwner(after: string | undefined): Promise<string | undefined>
  of(owner: string, limit: number): Promise<BusySession[]>
}

export function createBusySessions(store: Store): BusySessions {
  const sessions = store.collection(BUSY_SESSIONS)
  const oneShots = store.collection(ONE_SHOT_LOG)
  return {
    add: async (session) => void (await sessions.insert(SYSTEM_TENANT, session)),
    async delete(ids) {
      const keys = ids.flatMap((id) => (entryOf(id) ? [] : { id }))
      await sessions.deleteMany(SYSTEM_TENANT, keys, { durability: 'ordered' })
      const entries = ids.flatMap((id) => entryOf(id) ?? [])
      const unmark = { where: {}, set: { busy_at: '' } }
      await Promise.all(entries.map((key) => oneShots.update(SYSTEM_TENANT, { key, ...unmark })))
    },
    async nextOwner(after) {
      const next = [
        sessions.nextValue(SYSTEM_TENANT, 'owner', after),
        oneShots.nextValue(SYSTEM_TENANT, 'busy_at', after),
      ]
      const [owner, other] = await Promise.all(next)
      return owner === undefined || (other !== undefined && other < owner) ? other : owner
    },
    async of(owner, limit) {
      const found = (await sessions.page(SYSTEM_TENANT, { where: { owner }, limit })).map(
        ({ doc }) => doc as BusySession,
      )
      const left = limit - found.length
      return left === 0 ? found : [...found, ...(await oneShotsOf(oneShots, owner, left))]
    },
  }
}

/** The one-shot runs whose first log entry names the process. */
async function oneShotsOf(oneShots: Collection, owner: string, limit: number): Promise<BusySession[]> {
  const found = await oneShots.page(SYSTEM_TENANT, { where: { busy_at: owner }, limit })
  return found.map(({ doc }) => {
    const { of_tenant: tenant, workspace: runId } = doc as { of_tenant: TenantId; workspace: string }
    const session_id = oneShotSessionOf(runId)
    return { id: `${tenant} ${session_id}`, owner, tenant, session_id }
  })
}

/** The key of the first entry that has this id as a mark. Other marks have no space in their ids. */
function entryOf(id: string): { of_tenant: string; workspace: string; seq: number } | undefined {
  const [tenant = '', session] = id.split(' ')
  return session === undefined ? undefined : { of_tenant: tenant, workspace: runOfOneShot(session), seq: 1 }
}
