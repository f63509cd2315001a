import type { Schema, TenantEvent } from '../api.ts'
import { pages } from '../http/pages.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { linkedAbort } from '../http/wait.ts'
import { PermissionAsk, type Resolution } from '../run/permission-ask.ts'
import { tenantEvents } from './tenant-events.ts'

/** The tenant's permission requests, which are read on while the reader decides. What waits is bounded by what the server lets wait. */
export async function* watchInbox(
  transport: Transport,
  options: CallOptions,
): AsyncGenerator<PermissionAsk, void, undefined> {
  const abort = linkedAbort(options.signal)
  const waiting: PermissionAsk[] = []
  const state: { end?: { cause?: unknown } } = {}
  let wake = () => {}
  const onAsk = (ask: PermissionAsk) => {
    waiting.push(ask)
    wake()
  }
  const onEnd = (cause?: unknown) => {
    state.end = { cause }
    wake()
  }
  const reading = readAsks(transport, { ...options, signal: abort.signal }, onAsk).then(onEnd, onEnd)
  try {
    for (;;) {
      const ask = waiting.shift()
      if (ask) yield ask
      else if (state.end?.cause !== undefined) throw state.end.cause
      else if (state.end) return
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  } finally {
    abort.abort()
    await reading
  }
}

async function readAsks(
  transport: Transport,
  options: CallOptions,
  onAsk: (ask: PermissionAsk) => void,
): Promise<void> {
  const pending = new Map<string, PermissionAsk>()
  const types = ['permission.requested', 'permission.resolved', 'run.ended'] as const
  for await (const change of tenantEvents(transport, { ...options, types, isReset: true })) {
    const isReset = change.event === 'reset'
    const isNew = change.event === 'permission.requested' && !pending.has(String(change.data['request_id']))
    const listed = isReset || isNew ? await pages<Listed>(transport, '/permissions', undefined, options).all() : []
    for (const [id, ask] of pending) {
      const isGone = isReset && listed.every((request) => request.id !== id)
      const resolution = isGone ? ({ how: 'unknown' } as const) : resolutionOf(ask, change)
      if (!resolution) continue
      ask.settle(resolution)
      pending.delete(id)
    }
    for (const request of listed) {
      if (pending.has(request.id)) continue
      const { run_id: runId, session_id } = request
      const ask = new PermissionAsk(request, { transport, runId, sessionId: async () => session_id })
      pending.set(ask.id, ask)
      onAsk(ask)
    }
  }
}

type Listed = Schema<'PendingPermission'>

/** How the event has decided the request, if it has. */
function resolutionOf({ id, runId }: PermissionAsk, { event, data }: TenantEvent): Resolution | undefined {
  if (event === 'permission.resolved' && data['request_id'] === id) return data as Resolution
  return event === 'run.ended' && data['run_id'] === runId ? { how: 'ended' } : undefined
}
