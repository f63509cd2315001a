import { Lease } from '../../../../shared/broker/placement/lease.ts'
import { openRedisLink } from '../../../../shared/broker/redis-link.ts'
import { type ClusterWorker, type OwnedSession, WorkerRelay } from '../../../../shared/broker/relay/redis-worker.ts'
import { createLog } from '../../../../shared/log.ts'
import { NO_METRICS } from '../../../../shared/metrics.ts'
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
  has: () => false,
  adopt: () => {
    throw new Error('scripts have no sessions')
  },
  keep: () => {},
  release: () => {},
  holdQueues: () => {},
  runsForgotten: async () => {},
  abortAll: () => {},
}
const relay = new WorkerRelay(await openRedisLink(redisUrl), worker, {
  pid: process.pid,
  lease: new Lease(),
  log: createLog({ level: 'error' }),
  metrics: NO_METRICS,
})
await relay.join()
answerCalls({ port: 0 })
