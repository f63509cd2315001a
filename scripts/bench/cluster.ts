import { memberProgram } from '../local-cluster/member.ts'
import { type Counts, slotsOf } from '../local-cluster/slots.ts'
import { startMongoSet } from '../local-services/mongo.ts'
import { startRedis } from '../local-services/redis.ts'
import type { Bench } from './bench.ts'
import type { Target } from './client.ts'
import { GATEWAY } from './dialect.ts'
import type { FlowTarget } from './flow-service.ts'
import { MASTER_KEY } from './master-key.ts'

const FREE_PORTS = { port: 0, opsPort: 0 }
const STOP_WITHIN_MS = 3_000

type Env = Readonly<Record<string, string>>

/** A cluster on this machine. Disposing of it ends its processes, Redis included. `pids` are those of all of them. */
type Cluster = AsyncDisposable & {
  port: number
  pids: readonly number[]
  /** The same by what they are. */
  pidsOf: Readonly<Record<string, readonly number[]>>
  redisUrl: string
}

/** A cluster for queued work, whose databases can be asked what they have done. */
export type FlowCluster = FlowTarget & AsyncDisposable & Pick<Cluster, 'pidsOf' | 'redisUrl'> & { mongoUrl: string }

/** Starts one gateway, one executor and, since a gateway waits for one, one worker, with a Redis and a MongoDB of their own. Disposing of it ends all five. */
export async function startFlowCluster(bench: Bench, extra: Env = {}): Promise<FlowCluster> {
  await using started = new AsyncDisposableStack()
  const mongo = started.use(await startMongoSet())
  const env = { MODEL_PROVIDER: 'demo', MONGODB_URL: mongo.url, MASTER_KEY, ALLOW_PRIVATE_URLS: 'true', ...extra }
  const cluster = started.use(await startCluster(bench, { gateways: 1, workers: 1, executors: 1 }, env))
  const { port, redisUrl } = cluster
  const pidsOf = { ...cluster.pidsOf, mongod: mongo.members.map(({ pid }) => pid) }
  const all = started.move()
  const [mongoUrl, basePath] = [mongo.url, '/api/v1']
  return { port, basePath, pidsOf, redisUrl, mongoUrl, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

/** Starts one gateway and one worker with a Redis of their own, whose runs call the provider of the bench. */
export async function startRunCluster(bench: Bench, extra: Env = {}): Promise<Target & Cluster> {
  const provider = await bench.provider()
  const model = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'bench' }
  const env = { ...model, MODEL_BASE_URL: `http://127.0.0.1:${provider.port}/v1`, RUNS_PER_WORKER: '2000', ...extra }
  const cluster = await startCluster(bench, { gateways: 1, workers: 1, executors: 0 }, env)
  const dialect = { ...GATEWAY, healthPath: '/api/v1/health', runPath: '/api/v1/agent/run' }
  return { dialect, ...cluster }
}

async function startCluster(bench: Bench, counts: Counts, env: Env): Promise<Cluster> {
  await using started = new AsyncDisposableStack()
  const redis = started.use(await startRedis())
  const common = { HOST: '127.0.0.1', REDIS_URL: redis.url, RATE_LIMIT_RPM: '0', DRAIN_SECS: '0' }
  const pids = [redis.pid]
  const pidsOf: Record<string, number[]> = { redis: [redis.pid] }
  const slots = await slotsOf(counts, FREE_PORTS)
  for (const slot of slots.toReversed()) {
    // The gateways last: they wait for a worker.
    const program = memberProgram(slot, { ...common, ...env })
    const child = await program.spawn()
    started.defer(async () => void (await child.stop(STOP_WITHIN_MS)))
    await program.ready(child)
    pids.push(child.pid)
    pidsOf[slot.role] = [...(pidsOf[slot.role] ?? []), child.pid]
    bench.signal.throwIfAborted()
  }
  const all = started.move()
  const port = slots.find(({ role }) => role === 'gateway')?.port ?? 0
  return { port, pids, pidsOf, redisUrl: redis.url, [Symbol.asyncDispose]: () => all.disposeAsync() }
}
