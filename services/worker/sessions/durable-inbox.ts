import type { Inbox } from '../../../shared/cluster/commands/inbox.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { SessionSaver } from './session-saver.ts'
import type { Sessions } from './sessions.ts'
import type { StoredSessions } from './stored-sessions.ts'

export type DurableInboxDeps = { sessions: Sessions; stored: StoredSessions; saver: Pick<SessionSaver, 'save'> }

/** The inbox of a worker whose sessions are stored (D32): it opens the session that a command names, and answers when the change is stored. */
export function createDurableInbox(inbox: Inbox, { sessions, stored, saver }: DurableInboxDeps): Inbox {
  const save = (tenant: TenantId, id: string) => saver.save(sessions.get(tenant, id))
  return {
    ...inbox,
    async createSession(tenant, id, token, messages) {
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
    },
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
    sendMessage: (tenant, runId, message) =>
      stored.act(tenant, message.sessionId, () => inbox.sendMessage(tenant, runId, message)),
    async deleteSession(tenant, id, token) {
      await stored.act(tenant, id, async () => {
        const session = sessions.get(tenant, id)
        if (token === undefined || token === session.token) await stored.remove(session)
        await inbox.deleteSession(tenant, id, token)
      })
    },
  }
}
