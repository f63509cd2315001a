import type { Bench } from './bench.ts'
import { startRunCluster } from './cluster.ts'

export type Form = 'standalone' | 'cluster'

/** The product in one of its forms. Disposing of it ends its processes. */
export type Product = AsyncDisposable & { port: number; basePath: string; pids: readonly number[] }

/** Starts the product in this form: one process, or a gateway, a worker and Redis. */
export async function startForm(bench: Bench, form: Form): Promise<Product> {
  if (form === 'cluster') return Object.assign(await startRunCluster(bench), { basePath: '/api/v1' })
  const { port, pid, ...rest } = await bench.startOurs(`data-${form}`)
  return { ...rest, port, basePath: '/v1', pids: [pid] }
}
