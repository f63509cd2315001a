import { createMemoryBroker } from '../../shared/broker/memory.ts'
import { createMemoryPermissionStore } from '../../shared/broker/permissions/memory-store.ts'
import { ALWAYS_HELD } from '../../shared/broker/port.ts'
import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import type { Closer } from '../../shared/shutdown.ts'
import { openHttp } from '../gateway/open-http.ts'
import { openOps } from '../ops/open-ops.ts'
import { SILENT_BELL } from '../wiring/config-bell.ts'
import { openStore } from '../wiring/store.ts'
import { openTenantConfig } from '../wiring/tenant-config.ts'
import { openWorker } from '../worker/open-worker.ts'

/** After DRAIN_SECS: time for the streams to deliver their last frames, and for each later closer. */
const STREAMS_MS = 3_000
const CLOSE_MS = 5_000

/** No other process can take this worker's sessions or claim them. */
const ALONE = { fence: ALWAYS_HELD, onSessionRemoved: undefined }

export type Standalone = { url: string; opsUrl: string; closers: Closer[] }

/**
 * Opens a gateway and a worker in one process, connected by the in-process broker. Both listeners accept requests when it
 * resolves.
 */
export async function openStandalone(config: Config, log: Log): Promise<Standalone> {
  const ops = await openOps(config, { form: 'standalone', log })
  const { metrics } = ops
  const permissions = createMemoryPermissionStore()
  const store = await openStore(config, 'standalone', log)
  const tenantConfig = await openTenantConfig(config, { store, bell: SILENT_BELL, log })
  const parts = { permissions, lineStore: store, metrics, tenantConfig, ...ALONE }
  const { worker, toolBox, close: closeTools } = await openWorker(config, log, parts)
  const broker = createMemoryBroker(worker.inbox, permissions)
  const http = await openHttp(config, {
    form: 'standalone',
    broker,
    tools: toolBox.tools,
    ledger: store?.ledger,
    tenantConfig,
    link: undefined,
    log,
    metrics,
  })
  ops.ready({})
  /** The worker refuses new runs; requests that answer, cancel or follow a running one are still served. */
  const drain = async () => {
    const startedAt = performance.now()
    http.drain()
    await worker.drain(config.drainMs)
    await http.close(STREAMS_MS, config.drainMs - (performance.now() - startedAt))
  }
  return {
    url: http.url,
    opsUrl: ops.url,
    closers: [
      ops.drain,
      { name: 'runs and streams', deadlineMs: config.drainMs + 2 * STREAMS_MS, close: drain },
      { name: 'tools', deadlineMs: CLOSE_MS, close: closeTools },
      { name: 'tenant configuration', deadlineMs: CLOSE_MS, close: async () => tenantConfig?.close() },
      { name: 'store', deadlineMs: CLOSE_MS, close: async () => store?.close() },
      ops.close,
    ],
  }
}
