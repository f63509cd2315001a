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
  /** Those that are pending, oldest first. */
  list: (options?: CallOptions): Pages<Schema<'PendingPermission'>> =>
    pages<Schema<'PendingPermission'>>(transport, '/permissions')(undefined, options),

  /** One that is pending, or was decided: then it has `decided_at`. Throws `ApiError` 404 for one that is not known. */
  get: (requestId: string, options?: CallOptions): Promise<Schema<'PendingPermission'> | Schema<'DecidedPermission'>> =>
    transport.json('GET', path`/permissions/${requestId}`, { ...options, has: 'id' }),

  /** Those that were decided, newest first: by whom, when and how. */
  decided: (query?: { since?: string }, options?: CallOptions): Pages<Schema<'DecidedPermission'>> =>
    pages<Schema<'DecidedPermission'>>(transport, '/permissions')({ state: 'decided', ...query }, options),

  /** The tools that replies have allowed for the rest of a session. */
  remembered: (options?: CallOptions): Pages<Schema<'RememberedPermission'>> =>
    pages<Schema<'RememberedPermission'>>(transport, '/permissions')({ state: 'remembered' }, options),

  /** Answers a request of a session; of a one-shot run its id stands for the session. Throws `ApiError` 409 or 404 when it is too late. */
  reply: (sessionId: string, requestId: string, body: PermissionReply, options?: CallOptions): Promise<void> =>
    transport.json('POST', path`/sessions/${sessionId}/permissions/${requestId}`, { body, ...options }),

  /** Takes back what a reply has allowed for a session: one tool, or all. */
  forget: (sessionId: string, toolName?: string, options?: CallOptions): Promise<Schema<'ForgottenPermissions'>> =>
    transport.json('DELETE', '/permissions/remembered', {
      query: { session_id: sessionId, tool_name: toolName },
      ...options,
    }),

  /**
   * Each request that is pending or comes, once, of every run of the tenant. It reads on while its reader decides, so that
   * `ask.signal` tells of answers that others give. It ends when the signal is aborted (with its reason) or the loop is left.
   */
  watch: (options: Omit<CallOptions, 'timeoutMs'> = {}): AsyncGenerator<PermissionAsk, void, undefined> =>
    watchInbox(transport, options),
})
