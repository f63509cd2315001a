import { memberProgram } from '../local-cluster/member.ts'
import { slotsOf } from '../local-cluster/slots.ts'
import { startMongoSet } from '../local-services/mongo.ts'
import { startRedis } from '../local-services/redis.ts'
import type { Bench } from './bench.ts'
import type { FlowTarget } from './flow-service.ts'
import { MASTER_KEY } from './master-key.ts'

const COUNTS = { gateways: 1, workers: 0, executors: 1 }
const FREE_PORTS = { port: 0, opsPort: 0 }
const STOP_WITHIN_MS = 3_000

/** Starts one gateway and one executor with a Redis and a MongoDB of their own. Disposing of it ends all four. */
export async function startFlowCluster(bench: Bench): Promise<FlowTarget & AsyncDisposable> {
  await using started = new AsyncDisposableStack()
  const redis = started.use(await startRedis())
  const mongo = started.use(await startMongoSet())
  const env = {
    HOST: '127.0.0.1',
    REDIS_URL: redis.url,
    MONGODB_URL: mongo.url,
    MASTER_KEY,
    ALLOW_PRIVATE_URLS: 'true',
    RATE_LIMIT_RPM: '0',
    DRAIN_SECS: '0',
  }
  const slots = await slotsOf(COUNTS, FREE_PORTS)
  for (const slot of slots) {
    const program = memberProgram(slot, env)
    const child = await program.spawn()
    started.defer(async () => void (await child.stop(STOP_WITHIN_MS)))
    await program.ready(child)
    bench.signal.throwIfAborted()
  }
  const all = started.move()
  const port = slots.find(({ role }) => role === 'gateway')?.port ?? 0
  return { port, basePath: '/api/v1', [Symbol.asyncDispose]: () => all.disposeAsync() }
}
