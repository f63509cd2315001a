import { startRedis } from '../local-services/redis.ts'
import type { Bench } from './bench.ts'
import { startMembers } from './members.ts'

export type Form = 'standalone' | 'cluster'

/** The product in one of its forms. Disposing of it ends its processes. */
export type Product = AsyncDisposable & { port: number; basePath: string; pids: readonly number[] }

const COUNTS = { gateways: 1, workers: 1, executors: 0 }

/** Starts the product in this form: one process, or a gateway, a worker and Redis. */
export async function startForm(bench: Bench, form: Form): Promise<Product> {
  if (form === 'cluster') return startCluster(bench)
  const { port, pid, ...rest } = await bench.startOurs(`data-${form}`)
  return { ...rest, port, basePath: '/v1', pids: [pid] }
}

async function startCluster(bench: Bench): Promise<Product> {
  const provider = await bench.provider()
  await using started = new AsyncDisposableStack()
  const redis = started.use(await startRedis())
  const members = started.use(
    await startMembers(bench, COUNTS, {
      REDIS_URL: redis.url,
      MODEL_PROVIDER: 'openai-compatible',
      MODEL: 'bench',
      MODEL_BASE_URL: `http://127.0.0.1:${provider.port}/v1`,
      RUNS_PER_WORKER: '2000',
    }),
  )
  const all = started.move()
  const pids = [...members.pids, redis.pid]
  return { port: members.port, basePath: '/api/v1', pids, [Symbol.asyncDispose]: () => all.disposeAsync() }
}
