import { Lease } from '../../../../shared/cluster/members/lease.ts'
import { createRedisPorts } from '../../../../shared/cluster/redis-ports.ts'
import type { ClusterWorker, OwnedSession } from '../../../../shared/cluster/relay/worker/cluster-worker.ts'
import { WorkerRelay } from '../../../../shared/cluster/relay/worker/worker.ts'
import { createLog } from '../../../../shared/kernel/log.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { openRedisLink } from '../../../../shared/platform/redis/link.ts'
import { createSyntheticInbox } from '../source/synthetic-inbox.ts'
import { answerCalls, readOptions } from './answer.ts'

/** The product's worker with scripts instead of the engine. */
const { redisUrl } = readOptions()
const inbox = createSyntheticInbox()
const worker: ClusterWorker<OwnedSession> = {
  inbox,
  liveRuns: inbox.liveRuns,
  isDraining: () => false,
  drain: async () => {},
  knowsRun: () => false,
  sessions: () => [],
  oneShots: () => [],
  drainRuns: async () => false,
  leave: () => {},
  find: () => undefined,
  adopt: () => {
    throw new Error('scripts have no sessions')
  },
  keep: () => {},
  release: () => {},
  holdQueues: () => {},
  runsServed: async () => {},
  abortAll: () => {},
}
const relay = new WorkerRelay(createRedisPorts(await openRedisLink(redisUrl)), worker, {
  pid: process.pid,
  lease: new Lease(),
  log: createLog({ level: 'error' }),
  metrics: NO_METRICS,
})
await relay.join()
answerCalls({ port: 0 })
