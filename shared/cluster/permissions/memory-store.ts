import type { TenantId } from '../../kernel/tenant.ts'
import {
  type Decided,
  isReply,
  kindOf,
  type ListedAsks,
  MAX_PAGE_BYTES,
  type PendingPermission,
  type PermissionDecision,
  type PermissionKey,
  type PermissionPage,
  type PermissionStore,
  type PermissionSummary,
  readPlace,
  type SoughtPermission,
  waitMsOf,
  writePlace,
} from './store.ts'

type Entry = {
  runId: string
  /** By `performance.now()`. */
  deadline: number
  decided: PermissionDecision | undefined
  decision: Promise<PermissionDecision>
  resolve: (decision: PermissionDecision) => void
}

/** Permission requests of one process. `decide` reads and writes without awaiting, which makes it a compare-and-set. */
export function createMemoryPermissionStore(): PermissionStore {
  const scopes = new Map<string, Map<string, Entry>>()
  const pending = new PendingList()
  const scopeOf = (tenant: TenantId, scopeId: string) => scopes.get(`${tenant} ${scopeId}`)
  const entryOf = ({ tenant, scopeId, id }: PermissionKey) => scopeOf(tenant, scopeId)?.get(id)
  return {
    async open(request) {
      const key = `${request.tenant} ${request.scopeId}`
      const scope = scopes.get(key) ?? new Map<string, Entry>()
      if (scope.has(request.id)) return
      const { promise, resolve } = Promise.withResolvers<PermissionDecision>()
      const deadline = performance.now() + waitMsOf(request)
      scope.set(request.id, { runId: request.runId, deadline, decided: undefined, decision: promise, resolve })
      scopes.set(key, scope)
      pending.add(request, deadline)
    },
    async decide(key, decision) {
      const entry = entryOf(key)
      if (!entry) return { isWon: false, state: undefined }
      if (entry.decided) return { isWon: false, state: entry.decided.state }
      pending.delete(key.tenant, key.id)
      return settle(entry, decision)
    },
    find: async ({ tenant, ...key }) => pending.find(tenant, key),
    async decision(request) {
      return (await entryOf(request)?.decision) ?? { state: 'withdrawn' }
    },
    list: (tenant, page, isLive) => pending.page(tenant, page, isLive),
    async forget(tenant, scopeId, runId) {
      const scope = scopeOf(tenant, scopeId)
      for (const [id, entry] of scope ?? []) {
        if (runId !== undefined && entry.runId !== runId) continue
        scope?.delete(id)
        entry.resolve({ state: 'withdrawn' })
        pending.delete(tenant, id)
      }
      if (scope?.size === 0) scopes.delete(`${tenant} ${scopeId}`)
    },
  }
}

/** Decides an undecided request. A reply after the deadline lets it expire. */
function settle(entry: Entry, decision: PermissionDecision): Decided {
  const isLate = isReply(decision.state) && isOver(entry.deadline)
  const decided: PermissionDecision = isLate ? { state: 'expired' } : decision
  entry.decided = decided
  entry.resolve(decided)
  return { isWon: !isLate, state: decided.state }
}

const isOver = (deadline: number): boolean => performance.now() >= deadline

type ListedRequest = { place: number; deadline: number; bytes: number; summary: PermissionSummary }

/** The undecided requests of each tenant in the order in which they were opened. */
class PendingList {
  readonly #tenants = new Map<TenantId, Map<string, ListedRequest>>()
  #lastPlace = 0

  add({ tenant, id, scopeId, runId, details }: PendingPermission, deadline: number): void {
    const listed = this.#tenants.get(tenant) ?? new Map<string, ListedRequest>()
    const summary = { id, session_id: scopeId, run_id: runId, ...details }
    listed.set(id, { place: ++this.#lastPlace, deadline, bytes: JSON.stringify(summary).length, summary })
    this.#tenants.set(tenant, listed)
  }

  delete(tenant: TenantId, id: string): void {
    const listed = this.#tenants.get(tenant)
    listed?.delete(id)
    if (listed?.size === 0) this.#tenants.delete(tenant)
  }

  find(tenant: TenantId, { scopeId, id }: Omit<SoughtPermission, 'tenant'>): PermissionSummary | undefined {
    const found = this.#tenants.get(tenant)?.get(id)
    const isOfScope = scopeId === undefined || found?.summary.session_id === scopeId
    return found && isOfScope && !isOver(found.deadline) ? found.summary : undefined
  }

  async page(
    tenant: TenantId,
    { limit, cursor, kind = 'permission' }: ListedAsks,
    isLive = async (_runId: string) => true,
  ): Promise<PermissionPage> {
    const after = cursor === undefined ? 0 : readPlace(cursor)
    const permissions: PermissionSummary[] = []
    let bytes = 0
    let last = after
    const all = [...(this.#tenants.get(tenant)?.values() ?? [])].filter(({ summary }) => kindOf(summary.id) === kind)
    for (const listed of all) {
      if (listed.place <= after || isOver(listed.deadline) || !(await isLive(listed.summary.run_id))) continue
      bytes += listed.bytes
      const isFull = permissions.length === limit || (permissions.length > 0 && bytes > MAX_PAGE_BYTES)
      if (isFull) return { permissions, next_cursor: writePlace(last), total: await count(all, isLive) }
      permissions.push(listed.summary)
      last = listed.place
    }
    return { permissions, next_cursor: null }
  }
}

async function count(all: readonly ListedRequest[], isLive: (runId: string) => Promise<boolean>): Promise<number> {
  let sum = 0
  for (const { deadline, summary } of all) if (!isOver(deadline) && (await isLive(summary.run_id))) sum++
  return sum
}
