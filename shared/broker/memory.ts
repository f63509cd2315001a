import { newId } from '../ids.ts'
import { CursorStream } from './journal/cursor-stream.ts'
import { reply } from './permissions/reply.ts'
import type { Broker, Inbox, PermissionStore } from './port.ts'

/** The broker of the standalone form: gateway and worker are one process, so a command is a function call. */
export function createMemoryBroker(inbox: Inbox, permissions: PermissionStore): Broker {
  return {
    createSession: async (tenant, sessionId) => inbox.createSession(tenant, sessionId ?? newId('sess')),
    getSession: async (tenant, sessionId) => inbox.getSession(tenant, sessionId),
    deleteSession: (tenant, sessionId) => inbox.deleteSession(tenant, sessionId),
    async startRun(tenant, request) {
      const runId = newId('run')
      await inbox.startRun(tenant, runId, request)
      return { runId, frames: new CursorStream(inbox.followRun(tenant, runId, 0)) }
    },
    async sendMessage(tenant, sessionId, message) {
      const runId = newId('run')
      await inbox.sendMessage(tenant, runId, { ...message, sessionId })
      return { runId, frames: new CursorStream(inbox.followRun(tenant, runId, 0)) }
    },
    listRuns: async (tenant, filter) => inbox.listRuns(tenant, filter),
    getRun: async (tenant, runId) => inbox.getRun(tenant, runId),
    followRun: async (tenant, runId, after) => new CursorStream(inbox.followRun(tenant, runId, after)),
    cancelRun: async (tenant, runId) => inbox.cancelRun(tenant, runId),
    replyPermission: (tenant, scopeId, id, answer) => reply(permissions, { tenant, scopeId, id }, answer),
    listPermissions: (tenant, page) => permissions.list(tenant, page),
  }
}
