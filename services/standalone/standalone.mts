import { createMemoryBroker, createMemoryPermissionStore } from '../../shared/broker/memory.ts'
import { ALWAYS_HELD } from '../../shared/broker/port.ts'
import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import type { Closer } from '../../shared/shutdown.ts'
import { openHttp } from '../gateway/open-http.ts'
import { openOps } from '../ops/open-ops.ts'
import { runProcess } from '../wiring/process.ts'
import { openStore } from '../wiring/store.ts'
import { openWorker } from '../worker/open-worker.ts'

/** After DRAIN_SECS: for streams to deliver their last frames, and for what the tools have open. */
const STREAMS_MS = 3_000
const TOOLS_MS = 5_000

export const main = (): Promise<void> =>
  runProcess('standalone', async (config, log) => {
    const { url, opsUrl, closers } = await openStandalone(config, log)
    return { closers, ready: { url, ops_url: opsUrl, model: config.model?.model, provider: config.model?.provider } }
  })

export type Standalone = { url: string; opsUrl: string; closers: Closer[] }

/** Gateway and worker in one process, over the in-process broker (design §1). Listens when it resolves. */
export async function openStandalone(config: Config, log: Log): Promise<Standalone> {
  const ops = await openOps(config, { form: 'standalone', log })
  const { metrics } = ops
  const book = createMemoryPermissionStore()
  const store = await openStore(config, 'standalone', log)
  const parts = { book, fence: ALWAYS_HELD, lineStore: store, metrics }
  const { worker, toolBox, close: closeTools } = await openWorker(config, log, parts)
  const broker = createMemoryBroker(worker.inbox, book)
  const http = await openHttp(config, { form: 'standalone', broker, toolBox, ledger: store?.ledger, log, metrics })
  ops.ready({})
  /** New runs are refused by the worker; what runs can still be answered, cancelled and followed. */
  const drain = async () => {
    http.drain()
    await worker.drain(config.drainMs)
    await http.close(STREAMS_MS)
  }
  return {
    url: http.url,
    opsUrl: ops.url,
    closers: [
      ops.drain,
      { name: 'runs and streams', deadlineMs: config.drainMs + 2 * STREAMS_MS, close: drain },
      { name: 'tools', deadlineMs: TOOLS_MS, close: closeTools },
      { name: 'store', deadlineMs: TOOLS_MS, close: async () => store?.close() },
      ops.close,
    ],
  }
}
