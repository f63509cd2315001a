import { joinAsWorker, openWorkerBook } from '../../shared/broker/redis.ts'
import { openRedisLink } from '../../shared/broker/redis-link.ts'
import { createPrices } from '../../shared/providers/prices.ts'
import { openModels } from '../wiring/models.ts'
import { runProcess } from '../wiring/process.ts'
import { openTools } from '../wiring/tools.ts'
import { createWorker } from './worker.ts'

const CLOSE_MS = 5_000

/** A worker of the cluster: owns sessions and runs, and hosts the engine (design §1). */
await runProcess('cluster', async (config, log) => {
  const link = await openRedisLink(config.redisUrl ?? '')
  const book = await openWorkerBook(link, process.pid)
  const { toolBox, close: closeTools } = await openTools(config, log)
  const worker = createWorker({
    ...(await openModels(config)),
    toolBox,
    priceOf: createPrices(config.modelPrices),
    book,
    workspaceDir: config.workspaceDir,
    limits: config,
    log,
  })
  const relay = await joinAsWorker(link, worker, { pid: process.pid, log })
  return {
    ready: { role: 'worker', id: `wk_${relay.epoch()}` },
    closers: [
      { name: 'runs', deadlineMs: config.drainMs + CLOSE_MS, close: () => relay.drain(config.drainMs) },
      { name: 'membership', deadlineMs: CLOSE_MS, close: relay.stop },
      { name: 'tools', deadlineMs: CLOSE_MS, close: closeTools },
      { name: 'redis', deadlineMs: CLOSE_MS, close: link.close },
    ],
  }
})
