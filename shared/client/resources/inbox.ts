import type { Schema } from '../api.ts'
import { pages } from '../http/pages.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { linkedAbort } from '../http/wait.ts'
import { PendingAsks } from '../run/pending-asks.ts'
import type { PermissionAsk, Resolution } from '../run/permission-ask.ts'
import { tenantEvents } from './tenant-events.ts'

/** The tenant's permission requests. It continues to read while the caller decides; the server's own limits bound how many wait here. */
export async function* watchInbox(
  transport: Transport,
  options: CallOptions,
): AsyncGenerator<PermissionAsk, void, undefined> {
  const abort = linkedAbort(options.signal)
  const asks = new ReadableStream<PermissionAsk>({
    async start(waiting) {
      for await (const ask of readAsks(transport, { ...options, signal: abort.signal })) waiting.enqueue(ask)
      waiting.close()
    },
  })
  const reader = asks.getReader()
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    abort.abort()
  }
}

/** Reads each pending and each new request, and the decisions of those that were read. */
async function* readAsks(transport: Transport, call: CallOptions): AsyncGenerator<PermissionAsk, void, undefined> {
  const pending = new PendingAsks({ transport })
  const list = pages<Schema<'PendingPermission'>>(transport, '/permissions')
  const types = ['permission.requested', 'permission.resolved', 'run.ended'] as const
  for await (const { event, data } of tenantEvents(transport, { ...call, types, reset: true })) {
    const { request_id: requestId = '', run_id: endedId } = data as Record<string, string>
    if (event === 'permission.resolved') pending.settle(data as Resolution, ({ id }) => id === requestId)
    else if (event === 'run.ended') pending.settle({ how: 'ended' }, ({ runId }) => runId === endedId)
    else if (!pending.has(requestId)) {
      const listed = await list(undefined, call).all()
      if (event === 'reset') pending.settle({ how: 'unknown' }, (ask) => listed.every(({ id }) => id !== ask.id))
      for (const request of listed) if (!pending.has(request.id)) yield pending.begin(request, request.run_id)
    }
  }
}
