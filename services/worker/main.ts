import { Lease } from '../../shared/broker/placement/lease.ts'
import { openRedisLink } from '../../shared/broker/redis-link.ts'
import { joinAsWorker, openWorkerPermissions } from '../../shared/broker/relay/redis.ts'
import { openOps } from '../ops/open-ops.ts'
import { runProcess } from '../wiring/process.ts'
import { openStore } from '../wiring/store.ts'
import { openWorker } from './open-worker.ts'

const CLOSE_MS = 5_000

/** A worker of the cluster: owns sessions and runs, and hosts the engine (design §1). */
await runProcess('cluster', async (config, log) => {
  const ops = await openOps(config, { form: 'cluster', log })
  const { metrics } = ops
  const lease = new Lease()
  const link = await openRedisLink(config.redisUrl ?? '')
  const book = await openWorkerPermissions(link, process.pid)
  const store = await openStore(config, 'cluster', log)
  const parts = { book, fence: lease, lineStore: store, metrics }
  const { worker, close: closeTools } = await openWorker(config, log, parts)
  const relay = await joinAsWorker(link, worker, { pid: process.pid, lease, log, metrics })
  ops.ready({ redis: () => !relay.readiness().isRedisAway })
  return {
    ready: { role: 'worker', id: `wk_${relay.epoch()}`, ops_url: ops.url },
    closers: [
      ops.drain,
      { name: 'runs', deadlineMs: config.drainMs + CLOSE_MS, close: () => relay.drain(config.drainMs) },
      { name: 'membership', deadlineMs: CLOSE_MS, close: relay.stop },
      { name: 'tools', deadlineMs: CLOSE_MS, close: closeTools },
      { name: 'store', deadlineMs: CLOSE_MS, close: async () => store?.close() },
      { name: 'redis', deadlineMs: CLOSE_MS, close: link.close },
      ops.close,
    ],
  }
})
