import { memberProgram, type Role } from '../../local-cluster/member.ts'
import { slotsOf } from '../../local-cluster/slots.ts'
import { startMongoSet } from '../../local-services/mongo.ts'
import { startRedis } from '../../local-services/redis.ts'
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
}

export type Counts = { gateways: number; workers: number; executors?: number }

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
  const redis = started.use(await startRedis())
  const mongo = executors > 0 ? started.use(await startMongoSet()) : undefined
  const env = {
    ...SETTINGS,
    REDIS_URL: redis.url,
    ...(mongo && { MONGODB_URL: mongo.url }),
    MODEL_BASE_URL: place.modelUrl,
    DATA_DIR: place.dataDir,
    ...place.env,
  }
  const pids: { part: Part; pid: number }[] = [{ part: 'redis', pid: redis.pid }]
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
    redisUrl: redis.url,
    processes: pids,
    cpuMs: sumOf(cpuMs),
    rssMiB: sumOf(rssMiB),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

/** `after` less `before`, divided by `units`. */
export function each(after: PerPart, before: PerPart, units: number): PerPart {
  const parts = Object.keys(after) as Part[]
  return Object.fromEntries(parts.map((part) => [part, ((after[part] ?? 0) - (before[part] ?? 0)) / units]))
}
