import { startMongoSet } from '../local-services/mongo.ts'
import { startRedis } from '../local-services/redis.ts'
import type { Bench } from './bench.ts'
import type { FlowTarget } from './flow-service.ts'
import { MASTER_KEY } from './master-key.ts'
import { startMembers } from './members.ts'

const COUNTS = { gateways: 1, workers: 0, executors: 1 }

/** Starts one gateway and one executor with a Redis and a MongoDB of their own. Disposing of it ends all four. */
export async function startFlowCluster(bench: Bench): Promise<FlowTarget & AsyncDisposable> {
  await using started = new AsyncDisposableStack()
  const redis = started.use(await startRedis())
  const mongo = started.use(await startMongoSet())
  const env = { REDIS_URL: redis.url, MONGODB_URL: mongo.url, MASTER_KEY }
  const { port } = started.use(await startMembers(bench, COUNTS, env))
  const all = started.move()
  return { port, basePath: '/api/v1', [Symbol.asyncDispose]: () => all.disposeAsync() }
}
