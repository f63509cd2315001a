import type { StoredRuns } from '../../../shared/agent/sessions/open-runs.ts'
import type { SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { Inbox } from '../../../shared/cluster/commands/inbox.ts'
import type { SessionClaims } from '../../../shared/cluster/owners/held-claims.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import type { Workspaces } from '../../../shared/work/runs/workspaces.ts'
import type { BusyMarks } from './busy-marks.ts'
import { createDurableInbox } from './durable-inbox.ts'
import type { Session } from './session.ts'
import { RESERVED, type RunsKeeper } from './session-runs.ts'
import { SessionSaver } from './session-saver.ts'
import type { Keeping, Sessions } from './sessions.ts'
import { StoredSessions } from './stored-sessions.ts'

export type DurabilityDeps = {
  store: SessionStore
  claims: SessionClaims | undefined
  workspaces: Pick<Workspaces, 'openKept'>
  idleMs: number
  /** Marks the sessions that have runs. Left out: runs end with this worker. */
  marks?: BusyMarks | undefined
  /** Forgets a session that another worker owns. */
  release(session: Session): void
  /** Ends the runs of a session that another worker owns, or leaves them to it. */
  leaveRuns(session: Session): void
  /** Continues the runs of a session that was opened. Resolves when gateways can find the runs at this worker. */
  goOn(session: Session, runs: StoredRuns): Promise<void>
  log: Log
}

/** Stores a worker's sessions, and opens those that are stored (D32). */
export type Durability = {
  saver: SessionSaver
  keeping: Keeping
  /** Wraps an inbox, so that it opens the session that a command names. */
  wrap(inbox: Inbox, opening: { sessions: Sessions; isDraining(): boolean }): Inbox
  /** Deletes the stored data of a session that was removed here. */
  remove(session: Session): Promise<void>
  /** Resolves when the sessions are stored, or after a short time if the store does not answer. */
  settled(): Promise<void>
}

/** Under load, the turns of this period are stored together. */
const SAVE_EVERY_MS = 10
/** How long a run waits at its end until the store has its last turn. */
const SAVE_WAIT_MS = 5_000

export function createDurability({ store, idleMs, log, ...deps }: DurabilityDeps): Durability {
  const { claims, workspaces, marks, release, leaveRuns } = deps
  const onLost = (session: Session) => {
    log.warn('another worker has taken a session over; it is dropped here', { session_id: session.id })
    leaveRuns(session)
    release(session)
  }
  const saver = new SessionSaver({ store, idleMs, batchMs: SAVE_EVERY_MS, waitMs: SAVE_WAIT_MS, onLost, log })
  const keepRuns = (session: Session): RunsKeeper => ({
    note: () => saver.note(session),
    stored: () => saver.stored(session),
  })
  return {
    saver,
    keeping: { keep: (...args) => saver.keep(...args), ...(marks && { keepRuns }) },
    wrap(inbox, opening) {
      const onOpened = async (session: Session, runs: StoredRuns) => {
        workspaces.openKept(session.tenant, session.workspace) // The former worker has left the files in the folder, or the store, that both share.
        if (marks) await deps.goOn(session, runs)
      }
      const stored = new StoredSessions({
        store,
        idleMs,
        claims,
        reserved: marks && RESERVED,
        onOpened,
        log,
        ...opening,
      })
      return createDurableInbox(inbox, { sessions: opening.sessions, stored, saver, marks })
    },
    async remove({ tenant, log: own }) {
      if (own) await store.remove(tenant, own.head)
    },
    async settled() {
      await saver.settled()
      await marks?.settled()
    },
  }
}
