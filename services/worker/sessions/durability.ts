import type { SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { Inbox } from '../../../shared/cluster/commands/inbox.ts'
import type { SessionClaims } from '../../../shared/cluster/owners/held-claims.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import type { Workspaces } from '../../../shared/work/runs/workspaces.ts'
import { createDurableInbox } from './durable-inbox.ts'
import type { Session } from './session.ts'
import { SessionSaver } from './session-saver.ts'
import type { Sessions } from './sessions.ts'
import { StoredSessions } from './stored-sessions.ts'

export type DurabilityDeps = {
  store: SessionStore
  claims: SessionClaims | undefined
  workspaces: Pick<Workspaces, 'openKept'>
  idleMs: number
  /** Forgets a session that another worker owns. */
  release(session: Session): void
  log: Log
}

/** Stores a worker's sessions, and opens those that are stored (D32). */
export type Durability = {
  saver: SessionSaver
  /** Returns the inbox that opens the session which a command names. */
  wrap(inbox: Inbox, opening: { sessions: Sessions; isDraining(): boolean }): Inbox
  /** Deletes what is stored of a session that was removed here. */
  remove(session: Session): Promise<void>
}

/** Under load, the turns of this time are stored together. */
const SAVE_EVERY_MS = 10
/** How long a run waits at its end until the store has its last turn. */
const SAVE_WAIT_MS = 5_000

export function createDurability({ store, idleMs, log, ...deps }: DurabilityDeps): Durability {
  const { claims, workspaces, release } = deps
  const onLost = (session: Session) => {
    log.warn('another worker has taken a session over; it is dropped here', { session_id: session.id })
    void session.cancelAll('worker_lost')
    release(session)
  }
  const saver = new SessionSaver({ store, idleMs, batchMs: SAVE_EVERY_MS, waitMs: SAVE_WAIT_MS, onLost, log })
  return {
    saver,
    wrap(inbox, opening) {
      const onOpened = ({ tenant, workspace }: Session) => void workspaces.openKept(tenant, workspace)
      const stored = new StoredSessions({ store, idleMs, claims, onOpened, log, ...opening })
      return createDurableInbox(inbox, { sessions: opening.sessions, stored, saver })
    },
    async remove({ tenant, log: own }) {
      if (own) await store.remove(tenant, own.head)
    },
  }
}
