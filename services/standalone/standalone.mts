import { createMemoryBroker, createMemoryPermissionBook } from '../../shared/broker/memory.ts'
import type { Config } from '../../shared/config.ts'
import type { Log } from '../../shared/log.ts'
import { createPrices } from '../../shared/providers/prices.ts'
import type { Closer } from '../../shared/shutdown.ts'
import { openHttp } from '../wiring/http.ts'
import { openModels } from '../wiring/models.ts'
import { runProcess } from '../wiring/process.ts'
import { openTools } from '../wiring/tools.ts'
import { createWorker } from '../worker/worker.ts'

/** After DRAIN_SECS: for streams to deliver their last frames, and for what the tools have open. */
const STREAMS_MS = 3_000
const TOOLS_MS = 5_000

export const main = (): Promise<void> =>
  runProcess('standalone', async (config, log) => {
    const { url, closers } = await openStandalone(config, log)
    return { closers, ready: { url, model: config.model?.model, provider: config.model?.provider } }
  })

/** Gateway and worker in one process, over the in-process broker (design §1). Listens when it resolves. */
export async function openStandalone(config: Config, log: Log): Promise<{ url: string; closers: Closer[] }> {
  const { toolBox, close: closeTools } = await openTools(config, log)
  const book = createMemoryPermissionBook()
  const worker = createWorker({
    ...(await openModels(config)),
    toolBox,
    priceOf: createPrices(config.modelPrices),
    book,
    workspaceDir: config.workspaceDir,
    limits: config,
    log,
  })
  const broker = createMemoryBroker(worker.inbox, book)
  const http = await openHttp(config, { form: 'standalone', broker, toolBox, log })
  const drain = () => Promise.all([worker.drain(config.drainMs), http.close(config.drainMs + STREAMS_MS)])
  return {
    url: http.url,
    closers: [
      { name: 'runs and streams', deadlineMs: config.drainMs + 2 * STREAMS_MS, close: drain },
      { name: 'tools', deadlineMs: TOOLS_MS, close: closeTools },
    ],
  }
}
