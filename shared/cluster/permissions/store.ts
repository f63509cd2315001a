import { hash } from 'node:crypto'
import { decodeCursor, encodeCursor, invalidCursor, type PageRequest } from '../../kernel/cursor.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ApiType } from '../../platform/api/api-type.ts'

/** One item of `GET /permissions` (D4.12). `session_id` is the first id of the reply's path: a one-shot run's own id (D4.1). */
export type PermissionSummary = ApiType<'PendingPermission'>

/** `total`: how many are pending in total, if the page does not have all of them. */
export type PermissionPage = { permissions: PermissionSummary[]; next_cursor: string | null; total?: number }

/** There are two kinds of requests: permission for a tool call (api.md "Permission request"), or a call that the client executes itself (D45). */
export type AskKind = 'permission' | 'tool_call'

/** The id of a request contains its kind. */
export const kindOf = (id: string): AskKind => (id.startsWith('call_') ? 'tool_call' : 'permission')

/** The id of the request for a call that the client executes. It is derived from the run and the call, because the answer names only these. */
export const clientCallId = (runId: string, toolUseId: string): string =>
  `call_${hash('sha256', JSON.stringify([runId, toolUseId])).slice(0, 32)}`

/** A request, as it is stored until it is decided. */
export type PendingPermission = {
  id: string
  tenant: TenantId
  /** Id of the session or of the one-shot run: the first id of the reply's path. */
  scopeId: string
  runId: string
  details: Omit<PermissionSummary, 'id' | 'session_id' | 'run_id'>
}

/** A page of one kind of requests, by default permissions. */
export type ListedAsks = PageRequest & { kind?: AskKind | undefined }

export type PermissionKey = Pick<PendingPermission, 'tenant' | 'scopeId' | 'id'>

/** Without `scopeId` it may be of any session or run of the tenant. */
export type SoughtPermission = Pick<PendingPermission, 'tenant' | 'id'> & { scopeId: string | undefined }

/** How a permission request ended. `expired`: no reply came in time. `withdrawn`: the run ended before a reply came. */
export type PermissionDecision = {
  state: 'allowed' | 'denied' | 'answered' | 'expired' | 'withdrawn'
  reason?: string
  remember?: 'session'
  /** The caller who replied. */
  by?: string
  /** The input that replaces the model's, as JSON text; stores do not parse it. */
  input?: string
  /** The result of a call that the client has executed, as JSON text. */
  answer?: string
}

/** `isWon` is `true` when this call decided the request. Otherwise `state` is the earlier decision, or `undefined` for an unknown request. */
export type Decided = { isWon: boolean; state: PermissionDecision['state'] | undefined }

/**
 * Stores permission requests and decides them. Every decision is one compare-and-set from pending, so exactly one of several
 * replies, the timeout and the end of the run decides (`shared/cluster/README.md` "Permissions").
 */
export interface PermissionStore {
  open(request: PendingPermission): Promise<void>
  /**
   * Decides the request unless it is decided. A reply after the deadline does not count: it lets the request expire.
   * The store compares its own clock with the deadline in the step that decides.
   */
  decide(request: PermissionKey, decision: PermissionDecision): Promise<Decided>
  /** Returns a request that is pending and not expired. */
  find(request: SoughtPermission): Promise<PermissionSummary | undefined>
  /** Resolves when the request is decided. Rejects when `signal` is aborted. */
  decision(request: PermissionKey, signal?: AbortSignal): Promise<PermissionDecision>
  /**
   * Lists the tenant's requests of a kind that are pending and not expired, oldest first. With `isLive`, only requests of runs for which it
   * returns `true`. A page may be shorter than its limit. Throws `invalid_request` for a malformed cursor.
   */
  list(tenant: TenantId, page: ListedAsks, isLive?: (runId: string) => Promise<boolean>): Promise<PermissionPage>
  /**
   * Deletes the requests of a session or one-shot run, or with `runId` those of one run. Those that are pending are withdrawn; later
   * replies find no request.
   */
  forget(tenant: TenantId, scopeId: string, runId?: string): Promise<void>
}

/** A page ends before its limit when its requests would be larger than this together: the inputs of tools can be large. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** The cursor of a page that ends at this place: a whole number that rises with every request of the tenant. */
export const writePlace = (place: number): string => encodeCursor([place])

/** Throws `invalid_request` for a cursor that no list has returned. */
export function readPlace(cursor: string): number {
  const [place] = decodeCursor(cursor, ['number'])
  if (Number.isSafeInteger(place) && place > 0) return place
  throw invalidCursor()
}

/** How long a request may be replied to. Each store measures it by its own clock, because the clock of the worker may differ. */
export const waitMsOf = ({ details }: Pick<PendingPermission, 'details'>): number =>
  Date.parse(details.expires_at) - Date.parse(details.created_at)

/** Whether a client made this decision: only such a decision has a deadline. */
export const isReply = (state: PermissionDecision['state'] | undefined): boolean =>
  state === 'allowed' || state === 'denied' || state === 'answered'
