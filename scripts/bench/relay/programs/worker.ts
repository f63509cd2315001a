import { Lease } from '../../../../shared/broker/placement/lease.ts'
import { openRedisLink } from '../../../../shared/broker/redis-link.ts'
import { type ClusterWorker, joinAsWorker } from '../../../../shared/broker/relay/redis.ts'
import { createLog } from '../../../../shared/log.ts'
import { NO_METRICS } from '../../../../shared/metrics.ts'
import { createSyntheticInbox } from '../source/synthetic-inbox.ts'
import { answerCalls, readOptions } from './answer.ts'

type Session = Parameters<ClusterWorker<never>['release']>[0]

/** The product's worker, with scripts in place of the engine. */
const { redisUrl } = readOptions()
const inbox = createSyntheticInbox()
const worker: ClusterWorker<Session> = {
  inbox,
  liveRuns: inbox.liveRuns,
  isDraining: () => false,
  drain: async () => {},
  sessions: () => [],
  adopt: () => {},
  release: () => {},
  abortAll: () => {},
  onSessionRemoved: () => {},
}
await joinAsWorker(await openRedisLink(redisUrl), worker, {
  pid: process.pid,
  lease: new Lease(),
  log: createLog({ level: 'error' }),
  metrics: NO_METRICS,
})
answerCalls({ port: 0 })
