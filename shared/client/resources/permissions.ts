import type { Schema } from '../api.ts'
import { type Pages, pages } from '../http/pages.ts'
import { path } from '../http/request.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import type { PermissionAsk } from '../run/permission-ask.ts'
import { watchInbox } from './inbox.ts'

export type PermissionReply = Schema<'PermissionReplyRequest'>

export type Permissions = ReturnType<typeof createPermissions>

/** The permission requests of all the tenant's runs. */
export const createPermissions = (transport: Transport) => ({
  /** The pending requests, oldest first. */
  list: (options?: CallOptions): Pages<Schema<'PendingPermission'>> =>
    pages<Schema<'PendingPermission'>>(transport, '/permissions')(undefined, options),

  /** One request. If it was decided it has `decided_at`. Throws `ApiError` 404 for an unknown one. */
  get: (requestId: string, options?: CallOptions): Promise<Schema<'PendingPermission'> | Schema<'DecidedPermission'>> =>
    transport.json('GET', path`/permissions/${requestId}`, { ...options, has: 'id' }),

  /** The decided requests, newest first: by whom, when and how. */
  decided: (query?: { since?: string }, options?: CallOptions): Pages<Schema<'DecidedPermission'>> =>
    pages<Schema<'DecidedPermission'>>(transport, '/permissions')({ state: 'decided', ...query }, options),

  /** The tools that replies have allowed for the rest of a session. */
  remembered: (options?: CallOptions): Pages<Schema<'RememberedPermission'>> =>
    pages<Schema<'RememberedPermission'>>(transport, '/permissions')({ state: 'remembered' }, options),

  /** Answers a request of a session, or of a one-shot run, whose id is then the `sessionId`. Throws `ApiError` 409 or 404 when it is too late. */
  reply: (sessionId: string, requestId: string, body: PermissionReply, options?: CallOptions): Promise<void> =>
    transport.json('POST', path`/sessions/${sessionId}/permissions/${requestId}`, { body, ...options }),

  /** Takes back what a reply has allowed for a session: one tool, or all. */
  forget: (sessionId: string, toolName?: string, options?: CallOptions): Promise<Schema<'ForgottenPermissions'>> =>
    transport.json('DELETE', '/permissions/remembered', {
      query: { session_id: sessionId, tool_name: toolName },
      ...options,
    }),

  /**
   * Yields each pending and each new request of all the tenant's runs once. It continues to read while the caller decides, so
   * that `ask.signal` reports decisions by others. It ends when the signal is aborted (with its reason) or the loop is left.
   */
  watch: (options: Omit<CallOptions, 'timeoutMs'> = {}): AsyncGenerator<PermissionAsk, void, undefined> =>
    watchInbox(transport, options),
})
