import { newId } from '../ids.ts'
import type { TenantId } from '../tenant.ts'
import { CursorStream } from './frame-stream.ts'
import { reply } from './permission-reply.ts'
import type { Broker, Inbox, PendingPermission, PermissionBook, PermissionDecision } from './port.ts'

/** The broker of the standalone form: gateway and worker are one process, so a command is a call. */
export function createMemoryBroker(inbox: Inbox, book: PermissionBook): Broker {
  return {
    createSession: async (tenant, sessionId) => inbox.createSession(tenant, sessionId ?? newId('sess')),
    getSession: async (tenant, sessionId) => inbox.getSession(tenant, sessionId),
    deleteSession: (tenant, sessionId) => inbox.deleteSession(tenant, sessionId),
    async startRun(tenant, request) {
      const runId = newId('run')
      inbox.startRun(tenant, runId, request)
      return { runId, frames: new CursorStream(inbox.followRun(tenant, runId, 0)) }
    },
    async sendMessage(tenant, sessionId, message) {
      const runId = newId('run')
      inbox.sendMessage(tenant, runId, { ...message, sessionId })
      return { runId, frames: new CursorStream(inbox.followRun(tenant, runId, 0)) }
    },
    listRuns: async (tenant, filter) => inbox.listRuns(tenant, filter),
    getRun: async (tenant, runId) => inbox.getRun(tenant, runId),
    followRun: async (tenant, runId, after) => new CursorStream(inbox.followRun(tenant, runId, after)),
    cancelRun: async (tenant, runId) => inbox.cancelRun(tenant, runId),
    replyPermission: (tenant, scopeId, id, answer) => reply(book, { tenant, scopeId, id }, answer),
  }
}

type Entry = {
  runId: string
  decided: PermissionDecision | undefined
  decision: Promise<PermissionDecision>
  resolve: (decision: PermissionDecision) => void
}

/** Decisions within one process: between a look and a set nothing else runs, which is all that a compare-and-set needs. */
export function createMemoryPermissionBook(): PermissionBook {
  const scopes = new Map<string, Map<string, Entry>>()
  const scopeOf = (tenant: TenantId, scopeId: string) => scopes.get(`${tenant} ${scopeId}`)
  const entryOf = ({ tenant, scopeId, id }: PermissionKey) => scopeOf(tenant, scopeId)?.get(id)

  return {
    async open(request) {
      const key = `${request.tenant} ${request.scopeId}`
      const scope = scopes.get(key) ?? new Map<string, Entry>()
      const { promise, resolve } = Promise.withResolvers<PermissionDecision>()
      scope.set(request.id, { runId: request.runId, decided: undefined, decision: promise, resolve })
      scopes.set(key, scope)
    },
    async decide(key, decision) {
      const entry = entryOf(key)
      if (!entry || entry.decided) return { isWon: false, state: entry?.decided?.state }
      entry.decided = decision
      entry.resolve(decision)
      return { isWon: true, state: decision.state }
    },
    async decision(request) {
      return (await entryOf(request)?.decision) ?? { state: 'withdrawn' }
    },
    async forget(tenant, scopeId, runId) {
      const scope = scopeOf(tenant, scopeId)
      for (const [id, entry] of scope ?? []) if (runId === undefined || entry.runId === runId) scope?.delete(id)
      if (scope?.size === 0) scopes.delete(`${tenant} ${scopeId}`)
    },
  }
}

type PermissionKey = Pick<PendingPermission, 'tenant' | 'scopeId' | 'id'>
