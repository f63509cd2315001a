import { newId } from '../ids.ts'
import type { TenantId } from '../tenant.ts'
import { CursorStream } from './journal/cursor-stream.ts'
import { MAX_PAGE_BYTES, readPlace, writePlace } from './permissions/page.ts'
import { reply } from './permissions/reply.ts'
import type {
  Broker,
  Inbox,
  PageRequest,
  PendingPermission,
  PermissionDecision,
  PermissionKey,
  PermissionPage,
  PermissionStore,
  PermissionSummary,
} from './port.ts'

/** The broker of the standalone form: gateway and worker are one process, so a command is a call. */
export function createMemoryBroker(inbox: Inbox, book: PermissionStore): Broker {
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
    listPermissions: (tenant, page) => book.list(tenant, page),
  }
}

type Entry = {
  runId: string
  decided: PermissionDecision | undefined
  decision: Promise<PermissionDecision>
  resolve: (decision: PermissionDecision) => void
}

/** Decisions within one process: between a look and a set nothing else runs, which is all that a compare-and-set needs. */
export function createMemoryPermissionStore(): PermissionStore {
  const scopes = new Map<string, Map<string, Entry>>()
  const pending = new PendingList()
  const scopeOf = (tenant: TenantId, scopeId: string) => scopes.get(`${tenant} ${scopeId}`)
  const entryOf = ({ tenant, scopeId, id }: PermissionKey) => scopeOf(tenant, scopeId)?.get(id)

  return {
    async open(request) {
      const key = `${request.tenant} ${request.scopeId}`
      const scope = scopes.get(key) ?? new Map<string, Entry>()
      const { promise, resolve } = Promise.withResolvers<PermissionDecision>()
      scope.set(request.id, { runId: request.runId, decided: undefined, decision: promise, resolve })
      scopes.set(key, scope)
      pending.add(request)
    },
    async decide(key, decision) {
      const entry = entryOf(key)
      if (!entry || entry.decided) return { isWon: false, state: entry?.decided?.state }
      entry.decided = decision
      entry.resolve(decision)
      pending.delete(key.tenant, key.id)
      return { isWon: true, state: decision.state }
    },
    async decision(request) {
      return (await entryOf(request)?.decision) ?? { state: 'withdrawn' }
    },
    list: async (tenant, page, isLive) => pending.page(tenant, page, isLive),
    async forget(tenant, scopeId, runId) {
      const scope = scopeOf(tenant, scopeId)
      for (const [id, entry] of scope ?? []) {
        if (runId !== undefined && entry.runId !== runId) continue
        scope?.delete(id)
        pending.delete(tenant, id)
      }
      if (scope?.size === 0) scopes.delete(`${tenant} ${scopeId}`)
    },
  }
}

type Listed = { place: number; bytes: number; summary: PermissionSummary }

/** What is undecided, by tenant and in the order of opening. */
class PendingList {
  readonly #tenants = new Map<TenantId, Map<string, Listed>>()
  #lastPlace = 0

  add({ tenant, id, scopeId, runId, details }: PendingPermission): void {
    const listed = this.#tenants.get(tenant) ?? new Map<string, Listed>()
    const summary = { id, session_id: scopeId, run_id: runId, ...details }
    listed.set(id, { place: ++this.#lastPlace, bytes: JSON.stringify(summary).length, summary })
    this.#tenants.set(tenant, listed)
  }

  delete(tenant: TenantId, id: string): void {
    const listed = this.#tenants.get(tenant)
    listed?.delete(id)
    if (listed?.size === 0) this.#tenants.delete(tenant)
  }

  page(tenant: TenantId, { limit, cursor }: PageRequest, isLive = (_runId: string) => true): PermissionPage {
    const after = cursor === undefined ? 0 : readPlace(cursor)
    const permissions: PermissionSummary[] = []
    let bytes = 0
    let last = after
    for (const listed of this.#tenants.get(tenant)?.values() ?? []) {
      if (listed.place <= after || !isLive(listed.summary.run_id)) continue
      bytes += listed.bytes
      const isFull = permissions.length === limit || (permissions.length > 0 && bytes > MAX_PAGE_BYTES)
      if (isFull) return { permissions, next_cursor: writePlace(last) }
      permissions.push(listed.summary)
      last = listed.place
    }
    return { permissions, next_cursor: null }
  }
}
