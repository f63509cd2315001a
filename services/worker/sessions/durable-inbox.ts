import { isOneShotSession, logSessionOf, oneShotSessionOf } from '../../../shared/agent/sessions/one-shot.ts'
import type { Inbox } from '../../../shared/cluster/commands/inbox.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { BusyMarks } from './busy-marks.ts'
import type { SessionSaver } from './session-saver.ts'
import type { Sessions } from './sessions.ts'
import type { StoredSessions } from './stored-sessions.ts'

export type DurableInboxDeps = {
  sessions: Sessions
  stored: StoredSessions
  saver: Pick<SessionSaver, 'save'>
  /** Marks the sessions that have runs. Left out: runs end with this worker. */
  marks?: Pick<BusyMarks, 'add'> | undefined
}

/** A gateway waits a second for the answer. */
const ACCEPT_WITHIN_MS = 800

/** The inbox of a worker whose sessions are stored (D32): it opens the session that a command names, and answers when the change is stored. */
export function createDurableInbox(inbox: Inbox, { sessions, stored, saver, marks }: DurableInboxDeps): Inbox {
  const save = (tenant: TenantId, id: string) => saver.save(sessions.get(tenant, id))
  const sendMessage: Inbox['sendMessage'] = (tenant, runId, message) =>
    stored.act(tenant, message.sessionId, () => inbox.sendMessage(tenant, runId, message))
  return {
    ...inbox,
    sendMessage,
    ...(marks && keptRuns({ ...inbox, sendMessage }, { sessions, saver, marks })),
    createSession: createStored(inbox, { sessions, stored, saver }),
    getSession: (...args) => stored.act(args[0], args[1], () => inbox.getSession(...args)),
    listMessages: (...args) => stored.act(args[0], args[1], () => inbox.listMessages(...args)),
    async renameSession(tenant, id, title) {
      const summary = await stored.act(tenant, id, () => inbox.renameSession(tenant, id, title))
      await save(tenant, id)
      return summary
    },
    async forgetRemembered(tenant, id, toolName) {
      const count = await stored.act(tenant, id, () => inbox.forgetRemembered(tenant, id, toolName))
      await save(tenant, id)
      return count
    },
    async deleteSession(tenant, id, token) {
      await stored.act(tenant, id, async () => {
        const session = sessions.get(tenant, id)
        if (token === undefined || token === session.token) await stored.remove(session)
        await inbox.deleteSession(tenant, id, token)
      })
    },
  }
}

const createStored =
  (inbox: Inbox, { sessions, stored, saver }: Omit<DurableInboxDeps, 'marks'>): Inbox['createSession'] =>
  async (tenant, id, token, messages) => {
    const isKnown = sessions.find(tenant, id) !== undefined
    const summary = await inbox.createSession(tenant, id, token, messages)
    const session = sessions.get(tenant, id)
    try {
      await stored.add(session)
      if (session.conversation.messages.length > 0) await saver.save(session)
    } catch (cause) {
      if (!isKnown) await inbox.deleteSession(tenant, id, token).catch(() => {}) // It was removed meanwhile.
      throw cause
    }
    return summary
  }

type KeptRunsDeps = Pick<DurableInboxDeps, 'sessions' | 'saver'> & { marks: Pick<BusyMarks, 'add'> }

/** A run is accepted, and cancelled, when that is stored: a worker that goes on with the session knows of it. */
const keptRuns = (
  inbox: Inbox,
  { sessions, saver, marks }: KeptRunsDeps,
): Pick<Inbox, 'startRun' | 'sendMessage' | 'cancelRun'> => {
  const store = async (tenant: TenantId, runId: string, sessionId: string) => {
    const session = sessions.get(tenant, sessionId)
    try {
      await Promise.all([!isOneShotSession(sessionId) && marks.add(session), saver.save(session, ACCEPT_WITHIN_MS)])
    } catch (cause) {
      await Promise.resolve(inbox.cancelRun(tenant, runId)).catch(() => {}) // It is gone with its session.
      throw cause
    }
  }
  return {
    async startRun(tenant, runId, request) {
      await inbox.startRun(tenant, runId, request)
      await store(tenant, runId, oneShotSessionOf(runId))
    },
    async sendMessage(tenant, runId, message) {
      await inbox.sendMessage(tenant, runId, message)
      await store(tenant, runId, message.sessionId)
    },
    async cancelRun(tenant, runId) {
      await inbox.cancelRun(tenant, runId)
      const session = sessions.find(tenant, sessionOf(inbox, tenant, runId))
      const isOpen = session?.runs?.end(runId) ?? false
      if (session && (isOpen || session.log?.isDue)) await saver.save(session, ACCEPT_WITHIN_MS)
    },
  }
}

/** A run that was cancelled before it began is not known. */
function sessionOf(inbox: Inbox, tenant: TenantId, runId: string): string {
  try {
    return logSessionOf({ id: runId, sessionId: inbox.getRun(tenant, runId).session_id })
  } catch {
    return oneShotSessionOf(runId)
  }
}
