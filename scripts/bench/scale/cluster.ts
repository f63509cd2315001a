import { memberProgram, type Role } from '../../local-cluster/member.ts'
import { slotsOf } from '../../local-cluster/slots.ts'
import { startMongoSet } from '../../local-services/mongo.ts'
import { type RedisServer, startRedis } from '../../local-services/redis.ts'
import { startRedisCluster } from '../../local-services/redis-cluster.ts'
import { MASTER_KEY } from '../master-key.ts'
import { cpuMs, rssMiB } from '../proc.ts'

export type Part = Role | 'redis' | 'mongo'

/** A value for each kind of process; of several processes the sum. */
export type PerPart = Partial<Record<Part, number>>

export type ScaleCluster = AsyncDisposable & {
  /** The ports of the gateways, and their base path. */
  ports: readonly number[]
  redisUrl: string
  processes: readonly { part: Part; pid: number }[]
  /** CPU time in milliseconds, and resident memory in MiB. */
  cpuMs(): PerPart
  rssMiB(): PerPart
  /** CPU time of each node of Redis, in milliseconds. */
  nodesCpuMs(): number[]
}

/** Without `redisNodes` there is one Redis, with them a Redis Cluster. */
export type Counts = { gateways: number; workers: number; executors?: number; redisNodes?: number }

export const BASE_PATH = '/api/v1'
const FREE_PORTS = { port: 0, opsPort: 0 }
const STOP_WITHIN_MS = 5_000
/** No limit of the product is what a figure measures. */
const SETTINGS = {
  HOST: '127.0.0.1',
  MODEL_PROVIDER: 'openai-compatible',
  MODEL: 'bench',
  RATE_LIMIT_RPM: '0',
  RUNS_PER_WORKER: '20000',
  SESSIONS_PER_WORKER: '100000',
  SESSION_MEMORY_MB: '2000',
  DRAIN_SECS: '0',
  ALLOW_PRIVATE_URLS: 'true',
  MASTER_KEY,
}

/** Starts processes of the product with a Redis of their own, and with a MongoDB where there are executors. */
export async function startScaleCluster(
  counts: Counts,
  place: { modelUrl: string; dataDir: string; env?: Readonly<Record<string, string>> },
): Promise<ScaleCluster> {
  await using started = new AsyncDisposableStack()
  const { gateways, workers, executors = 0 } = counts
  const redis = await startNodes(started, counts)
  const mongo = executors > 0 ? started.use(await startMongoSet()) : undefined
  const env = {
    ...SETTINGS,
    ...redis.env,
    ...(mongo && { MONGODB_URL: mongo.url }),
    MODEL_BASE_URL: place.modelUrl,
    DATA_DIR: place.dataDir,
    ...place.env,
  }
  const pids: { part: Part; pid: number }[] = redis.servers.map(({ pid }) => ({ part: 'redis', pid }))
  for (const { pid } of mongo?.members ?? []) pids.push({ part: 'mongo', pid })
  const slots = await slotsOf({ gateways, workers, executors }, FREE_PORTS)
  for (const slot of slots.toSorted((a, b) => Number(a.role === 'gateway') - Number(b.role === 'gateway'))) {
    const program = memberProgram(slot, env)
    const child = await program.spawn()
    started.defer(async () => void (await child.stop(STOP_WITHIN_MS)))
    await program.ready(child)
    pids.push({ part: slot.role, pid: child.pid })
  }
  const all = started.move()
  const sumOf = (read: (pid: number) => number) => (): PerPart => {
    const sums: PerPart = {}
    for (const { part, pid } of pids) sums[part] = (sums[part] ?? 0) + read(pid)
    return sums
  }
  return {
    ports: slots.flatMap(({ port }) => (port === null ? [] : [port])),
    redisUrl: redis.servers[0]?.url ?? '',
    processes: pids,
    cpuMs: sumOf(cpuMs),
    rssMiB: sumOf(rssMiB),
    nodesCpuMs: () => redis.servers.map(({ pid }) => cpuMs(pid)),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

type Nodes = { servers: readonly RedisServer[]; env: Readonly<Record<string, string>> }

async function startNodes(started: AsyncDisposableStack, { redisNodes }: Counts): Promise<Nodes> {
  if (redisNodes === undefined) {
    const server = started.use(await startRedis())
    return { servers: [server], env: { REDIS_URL: server.url } }
  }
  const { nodes, servers } = started.use(await startRedisCluster({ primaries: redisNodes }))
  return { servers, env: { REDIS_CLUSTER: nodes.map(({ host, port }) => `${host}:${port}`).join(',') } }
}

/** `after` less `before`, divided by `units`. */
export function each(after: PerPart, before: PerPart, units: number): PerPart {
  const parts = Object.keys(after) as Part[]
  return Object.fromEntries(parts.map((part) => [part, ((after[part] ?? 0) - (before[part] ?? 0)) / units]))
}
