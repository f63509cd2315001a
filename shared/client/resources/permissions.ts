import type { Schema, TenantEvent } from '../api.ts'
import { Pages } from '../http/pages.ts'
import { at, type Call, type CallOptions, type Transport } from '../http/transport.ts'
import { linkedAbort } from '../http/wait.ts'
import { PermissionAsk, type Resolution } from '../run/permission-ask.ts'
import { Inbox } from './inbox.ts'
import { tenantEvents } from './tenant-events.ts'

export type PermissionReply = Schema<'PermissionReplyRequest'>

/** The permission requests of all the tenant's runs. */
export class Permissions {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Those that are pending, oldest first. */
  list(options?: CallOptions): Pages<Schema<'PendingPermission'>> {
    return this.#pages({ ...options })
  }

  /** Those that were decided, newest first: by whom, when and how. */
  decided(query?: { since?: string }, options?: CallOptions): Pages<Schema<'DecidedPermission'>> {
    return this.#pages({ query: { state: 'decided', ...query }, ...options })
  }

  /** The tools that replies have allowed for the rest of a session. */
  remembered(options?: CallOptions): Pages<Schema<'RememberedPermission'>> {
    return this.#pages({ query: { state: 'remembered' }, ...options })
  }

  /** Answers a request of a session; of a one-shot run its id stands for the session. Throws `ApiError` 409 or 404 when it is too late. */
  async reply(sessionId: string, requestId: string, body: PermissionReply, options?: CallOptions): Promise<void> {
    const path = at(`${at('/sessions/', sessionId)}/permissions/`, requestId)
    await this.#transport.json('POST', path, { body, ...options })
  }

  /** Takes back what a reply has allowed for a session: one tool, or all. */
  forget(sessionId: string, toolName?: string, options?: CallOptions): Promise<Schema<'ForgottenPermissions'>> {
    const query = { session_id: sessionId, tool_name: toolName }
    return this.#transport.json('DELETE', '/permissions/remembered', { query, ...options })
  }

  /**
   * Each request that is pending or comes, once, of every run of the tenant. It reads on while its reader decides, so that
   * `ask.signal` tells of answers that others give. It ends when the signal is aborted (with its reason) or the loop is left.
   */
  async *watch(options: Omit<CallOptions, 'timeoutMs'> = {}): AsyncGenerator<PermissionAsk, void, undefined> {
    const abort = linkedAbort(options.signal)
    const inbox = new Inbox<PermissionAsk>()
    const reading = this.#read(inbox, { ...options, signal: abort.signal }).then(
      () => inbox.end(),
      (cause: unknown) => inbox.end(cause),
    )
    try {
      yield* inbox.take()
    } finally {
      abort.abort()
      await reading
    }
  }

  async #read(inbox: Inbox<PermissionAsk>, options: CallOptions): Promise<void> {
    const pending = new Map<string, PermissionAsk>()
    const types = ['permission.requested', 'permission.resolved', 'run.ended'] as const
    for await (const change of tenantEvents(this.#transport, { ...options, types, isReset: true })) {
      for (const id of settled(change, pending)) pending.delete(id)
      const isNew = change.event === 'permission.requested' && !pending.has(String(change.data['request_id']))
      if (!isNew && change.event !== 'reset') continue
      const listed = await this.list(options).all()
      for (const request of listed) {
        if (pending.has(request.id)) continue
        const ask = this.#askOf(request)
        pending.set(ask.id, ask)
        inbox.add(ask)
      }
      if (change.event === 'reset') settleOthers(pending, new Set(listed.map(({ id }) => id)))
    }
  }

  #askOf(request: Schema<'PendingPermission'>): PermissionAsk {
    const sessionId = async () => request.session_id
    return new PermissionAsk(request, { transport: this.#transport, runId: request.run_id, sessionId })
  }

  #pages<Item>(call: Call): Pages<Item> {
    return new Pages(this.#transport, '/permissions', call)
  }
}

/** The ids of the requests that the event has decided. */
function settled({ event, data }: TenantEvent, pending: ReadonlyMap<string, PermissionAsk>): string[] {
  if (event === 'permission.resolved') {
    const ask = pending.get(String(data['request_id']))
    ask?.settle(data as Resolution)
    return ask ? [ask.id] : []
  }
  if (event !== 'run.ended') return []
  const asks = [...pending.values()].filter(({ runId }) => runId === data['run_id'])
  for (const ask of asks) ask.settle({ how: 'ended' })
  return asks.map(({ id }) => id)
}

function settleOthers(pending: Map<string, PermissionAsk>, listed: ReadonlySet<string>): void {
  for (const [id, ask] of pending) {
    if (listed.has(id)) continue
    ask.settle({ how: 'unknown' })
    pending.delete(id)
  }
}
