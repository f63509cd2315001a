import { type Child, spawnChild } from '../../scripts/local-services/child.ts'
import { COMPILE_CACHE } from '../../scripts/node-options.ts'
import { startClusterRedis } from './cluster-redis.ts'

const READY_MS = 90_000
const STOP_MS = 10_000
/** How many processes of each role there are, where a test does not need fewer. Executors need a MongoDB. */
const COUNTS = { gateway: 2, worker: 2, executor: 1 }

export type Cluster = {
  /** The gateways' addresses, with the base path. */
  urls: readonly string[]
  gateways: readonly Child[]
  workers: readonly Child[]
  /** Empty without a MONGODB_URL. */
  executors: readonly Child[]
  /** Starts one more, which `close` stops. */
  startExecutor(): Promise<Child>
  startWorker(): Promise<Child>
  redisUrls: readonly string[]
  close(): Promise<void>
}

/**
 * Starts two gateways, two workers and a Redis as separate processes, and an executor when `env` has a MONGODB_URL, unless
 * `fewer` has other numbers. They end when this process ends, however it ends.
 */
export async function startCluster(
  env: Readonly<Record<string, string>>,
  fewer: Partial<typeof COUNTS> = {},
): Promise<Cluster> {
  const redis = await startClusterRedis()
  const running: Child[] = []
  const close = async () => {
    await Promise.all(running.map((child) => child.stop(STOP_MS)))
    await redis.stop()
  }
  const counts = { ...COUNTS, ...fewer }
  const startAll = (role: keyof typeof COUNTS, count = counts[role]) =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const child = await start(role, { ...env, ...redis.env })
        running.push(child)
        const [line] = await child.line(/^\{.*"msg":"listening".*\}$/m, READY_MS)
        return { child, url: (JSON.parse(line) as { url?: string }).url ?? '' }
      }),
    )
  const startOne = async (role: 'executor' | 'worker') => {
    const [started] = await startAll(role, 1)
    if (!started) throw new Error(`no ${role} was started`)
    return started.child
  }
  try {
    // First, so that each gateway finds them when it joins.
    const [workers, executors] = await Promise.all([
      startAll('worker'),
      env['MONGODB_URL'] === undefined ? [] : startAll('executor'),
    ])
    const gateways = await startAll('gateway')
    const childOf = ({ child }: { child: Child }) => child
    return {
      urls: gateways.map(({ url }) => url),
      redisUrls: redis.urls,
      gateways: gateways.map(childOf),
      workers: workers.map(childOf),
      executors: executors.map(childOf),
      startExecutor: () => startOne('executor'),
      startWorker: () => startOne('worker'),
      close,
    }
  } catch (cause) {
    await close()
    throw cause
  }
}

function start(role: string, env: Readonly<Record<string, string>>): Promise<Child> {
  const main = new URL(`../../services/${role}/main.ts`, import.meta.url).pathname
  const fixed = {
    HOST: '127.0.0.1',
    PORT: '0',
    OPS_PORT: '0',
    PATH: process.env['PATH'] ?? '',
    NODE_COMPILE_CACHE: COMPILE_CACHE,
  }
  return spawnChild({ name: role, command: process.execPath, args: [main], env: { ...fixed, ...env } })
}
