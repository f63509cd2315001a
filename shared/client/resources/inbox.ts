import type { Schema } from '../api.ts'
import { pages } from '../http/pages.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { linkedAbort } from '../http/wait.ts'
import { PendingAsks } from '../run/pending-asks.ts'
import type { PermissionAsk, Resolution } from '../run/permission-ask.ts'
import { tenantEvents } from './tenant-events.ts'

/** The tenant's permission requests, which are read on while the reader decides. What waits is bounded by what the server lets wait. */
export async function* watchInbox(
  transport: Transport,
  options: CallOptions,
): AsyncGenerator<PermissionAsk, void, undefined> {
  const abort = linkedAbort(options.signal)
  const asks = new ReadableStream<PermissionAsk>({
    start(waiting) {
      readAsks(transport, { ...options, signal: abort.signal }, (ask) => waiting.enqueue(ask)).then(
        () => waiting.close(),
        (cause: unknown) => waiting.error(cause),
      )
    },
  })
  const reader = asks.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  } finally {
    abort.abort()
  }
}

/** Reads each request that is pending or comes, and how those that were read are decided. */
async function readAsks(
  transport: Transport,
  options: CallOptions,
  onAsk: (ask: PermissionAsk) => void,
): Promise<void> {
  const pending = new PendingAsks()
  const types = ['permission.requested', 'permission.resolved', 'run.ended'] as const
  for await (const { event, data } of tenantEvents(transport, { ...options, types, isReset: true })) {
    const { request_id: requestId, run_id: endedId } = data as Record<string, string>
    if (event === 'permission.resolved') pending.settle(data as Resolution, ({ id }) => id === requestId)
    if (event === 'run.ended') pending.settle({ how: 'ended' }, ({ runId }) => runId === endedId)
    const isReset = event === 'reset'
    if (!isReset && (event !== 'permission.requested' || pending.has(String(requestId)))) continue
    const listed = await pages<Listed>(transport, '/permissions', undefined, options).all()
    if (isReset) pending.settle({ how: 'unknown' }, (ask) => listed.every(({ id }) => id !== ask.id))
    for (const request of listed) {
      const { id, run_id: runId } = request
      if (!pending.has(id)) onAsk(pending.begin(request, { transport, runId }))
    }
  }
}

type Listed = Schema<'PendingPermission'>
